import Dispatch
import JobModel
import JobStore
import Synchronization

/// A few connections, each for one thread at a time, which are opened when they are needed.
final class PostgreSQLPool: Sendable {
    private struct State {
        var free: [PostgreSQLConnection] = []
        /// Why there was no connection last, and until when the next calls need not try.
        var failure: (error: StoreError, until: DispatchTime)?
        var isClosed = false
    }

    private let connector: PostgreSQLConnector
    private let state = Mutex(State())
    private let permits: DispatchSemaphore

    /// At most `count` connections, with errors of this code.
    init(_ settings: PostgreSQLSettings, count: Int, errors: StoreError.Code) {
        connector = PostgreSQLConnector(settings, errors: errors)
        permits = DispatchSemaphore(value: count)
    }

    /// Adds a connection that is open already.
    func add(_ connection: PostgreSQLConnection) { state.withLock { $0.free.append(connection) } }

    /// Later calls fail.
    func close() {
        state.withLock { state in
            state.isClosed = true
            state.free = []
        }
    }

    /// Runs `body` on a connection that no other thread uses; one that has failed is closed.
    func run<Value>(_ body: (PostgreSQLConnection) throws(StoreError) -> Value) throws(StoreError) -> Value {
        permits.wait()
        defer { permits.signal() }
        let idle = try state.withLock { (state) throws(StoreError) in
            if state.isClosed { throw StoreError.closed }
            if let failure = state.failure, failure.until > DispatchTime.now() { throw failure.error }
            return state.free.popLast()
        }
        let connection = if let idle, idle.checkIdle() { idle } else { try connect() }
        let value = try body(connection)
        state.withLock { if !$0.isClosed { $0.free.append(connection) } }
        return value
    }

    private func connect() throws(StoreError) -> PostgreSQLConnection {
        let start = DispatchTime.now().uptimeNanoseconds
        do {
            let connection = try connector.connect()
            state.withLock { $0.failure = nil }
            return connection
        } catch {
            // The pause is as long as the attempt: other calls do not wait for a silent server as well, and connect again
            // to one that refuses at once.
            let end = DispatchTime.now()
            let pause = min(1_000_000_000, end.uptimeNanoseconds - start)
            state.withLock { $0.failure = (error, end + .nanoseconds(Int(pause))) }
            throw error
        }
    }
}
