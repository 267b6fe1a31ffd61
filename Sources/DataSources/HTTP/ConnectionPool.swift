import NIOCore
import NIOHTTP1
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
    }

    private struct Entry {
        let connection: ServerConnection
        let expiry: Scheduled<Void>
    }

    private struct State {
        /// The most recently used is the last.
        var idle: [Entry] = []
        var isClosed = false
    }

    static let limit = 128
    static let longest = TimeAmount.seconds(30)

    private let state = Mutex(State())
    private let timers: (any EventLoop)?

    /// Measures idleness by `timers`, or else by the loop of each connection.
    init(timers: (any EventLoop)? = nil) {
        self.timers = timers
    }

    /// Takes an idle connection out of the pool.
    func connection(_ key: Key) -> ServerConnection? {
        while let connection = take(where: { $0.key == key }) {
            if connection.channel.isActive { return connection }
        }
        return nil
    }

    private func take(where isWanted: (ServerConnection) -> Bool) -> ServerConnection? {
        let entry = state.withLock { state in
            state.idle.lastIndex { isWanted($0.connection) }.map { state.idle.remove(at: $0) }
        }
        entry?.expiry.cancel()
        return entry?.connection
    }

    /// Keeps a connection that has become idle. Called on its event loop.
    func add(_ connection: ServerConnection) {
        let channel = connection.channel
        let expiry = (timers ?? channel.eventLoop).scheduleTask(in: Self.longest) { channel.close(promise: nil) }
        let surplus = state.withLock { state -> Entry? in
            let entry = Entry(connection: connection, expiry: expiry)
            if state.isClosed { return entry }
            state.idle.append(entry)
            return state.idle.count > Self.limit ? state.idle.removeFirst() : nil
        }
        if let surplus { Self.end([surplus]) }
    }

    /// Removes a closed connection.
    func remove(_ connection: ServerConnection) { _ = take { $0 === connection } }

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
