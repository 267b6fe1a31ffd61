import NIOCore
import Synchronization

/// Idle connections, to be reused on their event loops.
///
/// At most ``limit`` in all, each for at most ``longest``; the oldest is closed first.
final class ConnectionPool: Sendable {
    /// What two exchanges must have in common to share a connection.
    struct Key: Sendable, Hashable {
        let loop: ObjectIdentifier
        let origin: RequestURL.Origin
        /// A server may know a connection as that of a user, or another user could have left it in the middle of a
        /// request.
        let owner: UInt32
        /// The index of the client's certificate.
        var certificate: Int?
    }

    private struct Entry {
        let connection: ServerConnection
        let expiry: Scheduled<Void>
        let start: NIODeadline
    }

    private struct State {
        /// The most recently used is the last.
        var idle: [Entry] = []
        var isClosed = false
    }

    static let limit = 128
    static let longest = TimeAmount.seconds(30)
    /// The time after which a connection may be stale: a server could be closing it.
    static let fresh = TimeAmount.seconds(1)

    private let state = Mutex(State())
    private let timers: (any EventLoop)?

    init(timers: (any EventLoop)? = nil) { self.timers = timers }

    /// Takes an idle connection out of the pool. Called on its event loop.
    ///
    /// A request that must not be sent twice takes no stale connection.
    func connection(_ key: Key, mayBeStale: Bool) -> ServerConnection? {
        func isWanted(_ entry: Entry) -> Bool {
            guard entry.connection.key == key else { return false }
            return mayBeStale || clock(entry.connection).now - entry.start <= Self.fresh
        }
        while let connection = take(where: isWanted) {
            if connection.channel.isActive { return connection }
        }
        return nil
    }

    private func clock(_ connection: ServerConnection) -> any EventLoop { timers ?? connection.channel.eventLoop }

    private func take(where isWanted: (Entry) -> Bool) -> ServerConnection? {
        let entry = state.withLock { state in
            state.idle.lastIndex(where: isWanted).map { state.idle.remove(at: $0) }
        }
        entry?.expiry.cancel()
        return entry?.connection
    }

    /// Keeps a connection that has become idle, a second less than its server does. Called on its event loop.
    func add(_ connection: ServerConnection, for time: TimeAmount? = nil) {
        let (channel, clock) = (connection.channel, clock(connection))
        let time = min(time.map { $0 - .seconds(1) } ?? Self.longest, Self.longest)
        guard time > .zero else { return channel.close(promise: nil) }
        let expiry = clock.scheduleTask(in: time) { channel.close(promise: nil) }
        let surplus = state.withLock { state -> Entry? in
            let entry = Entry(connection: connection, expiry: expiry, start: clock.now)
            if state.isClosed { return entry }
            state.idle.append(entry)
            return state.idle.count > Self.limit ? state.idle.removeFirst() : nil
        }
        if let surplus { Self.end([surplus]) }
    }

    func remove(_ connection: ServerConnection) { _ = take { $0.connection === connection } }

    /// Closes idle connections, and others when they become idle.
    func close() {
        let idle = state.withLock { state in
            defer { (state.idle, state.isClosed) = ([], true) }
            return state.idle
        }
        Self.end(idle)
    }

    private static func end(_ entries: [Entry]) {
        for entry in entries {
            entry.expiry.cancel()
            entry.connection.channel.close(promise: nil)
        }
    }
}
