import NIOCore
import NIOHTTP1
import Synchronization

/// Connections that are open and idle, to be used again on the event loop that they live on.
///
/// At most ``limit`` in all, each for at most ``longest``; the oldest goes first.
final class ConnectionPool: Sendable {
    /// What two exchanges must share to share a connection.
    struct Key: Sendable, Hashable {
        let loop: ObjectIdentifier
        let origin: RequestURL.Origin
        /// Nobody gets a connection that another user could have left in a state that the server takes for something else, or
        /// that it knows as that user's.
        let owner: UInt32
        /// The transport that opened it, as ``beginGeneration()`` counts them: one with other settings or another policy must
        /// not use it.
        var generation = 0
    }

    private struct Entry {
        let connection: ServerConnection
        let expiry: Scheduled<Void>

        func end() {
            expiry.cancel()
            connection.channel.close(promise: nil)
        }
    }

    private struct State {
        /// The one used last is the last.
        var idle: [Entry] = []
        var generation = 0
        var isClosed = false
    }

    static let limit = 128
    static let longest = TimeAmount.seconds(30)

    private let state = Mutex(State())
    private let timers: (any EventLoop)?

    /// Idleness is by the time of `timers`, or of the loops that the connections live on without it.
    init(timers: (any EventLoop)? = nil) {
        self.timers = timers
    }

    /// Closes what is idle, and keeps from now on only connections of the generation that it gives; others go on until they are
    /// idle.
    func beginGeneration() -> Int {
        let (generation, idle) = state.withLock { state in
            defer { state.idle = [] }
            state.generation += 1
            return (state.generation, state.idle)
        }
        for entry in idle { entry.end() }
        return generation
    }

    /// An idle connection, which is the caller's from now on.
    func connection(_ key: Key) -> ServerConnection? {
        while true {
            let entry = state.withLock { state -> Entry? in
                guard let index = state.idle.lastIndex(where: { $0.connection.key == key }) else { return nil }
                return state.idle.remove(at: index)
            }
            guard let entry else { return nil }
            entry.expiry.cancel()
            if entry.connection.channel.isActive { return entry.connection }
        }
    }

    /// Keeps a connection that has become idle; on its event loop.
    func add(_ connection: ServerConnection) {
        let channel = connection.channel
        let expiry = (timers ?? channel.eventLoop).scheduleTask(in: Self.longest) { channel.close(promise: nil) }
        let surplus = state.withLock { state -> Entry? in
            let entry = Entry(connection: connection, expiry: expiry)
            if state.isClosed || connection.key.generation != state.generation { return entry }
            state.idle.append(entry)
            return state.idle.count > Self.limit ? state.idle.removeFirst() : nil
        }
        surplus?.end()
    }

    /// Removes a connection that has ended.
    func remove(_ connection: ServerConnection) {
        let expiries = state.withLock { state in
            defer { state.idle.removeAll { $0.connection === connection } }
            return state.idle.filter { $0.connection === connection }.map(\.expiry)
        }
        for expiry in expiries { expiry.cancel() }
    }

    /// Closes what is idle, and whatever becomes so later.
    func close() {
        let idle = state.withLock { state in
            defer { (state.idle, state.isClosed) = ([], true) }
            return state.idle
        }
        for entry in idle { entry.end() }
    }
}
