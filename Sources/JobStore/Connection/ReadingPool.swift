import CSQLite
import Dispatch
import JobModel
import Synchronization

/// A few connections that read, each for a page at a time.
///
/// The log keeps what is committed after the snapshot of a reader, and would grow as long as there are readers. So the
/// checkpointer takes all their permits for a moment.
final class ReadingPool: Sendable {
    private struct State {
        var free: [SQLiteConnection] = []
        /// The connections of long reads.
        var long: [SQLiteConnection] = []
        var isClosed = false
    }

    private let state = Mutex(State())
    private let permits: DispatchSemaphore
    private let longReads = DispatchGroup()
    private let path: String
    private let count: Int

    init(_ path: String, count: Int) throws(StoreError) {
        self.path = path
        self.count = count
        permits = DispatchSemaphore(value: count)
        for _ in 0..<count {
            let connection = try SQLiteConnection(path, errors: .read)
            try connection.execute("PRAGMA query_only = ON; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -8192")
            state.withLock { $0.free.append(connection) }
        }
    }

    /// Runs `body` in one snapshot, on a connection that no other thread uses.
    func read<Value>(_ body: (SQLiteConnection) throws(StoreError) -> Value) throws(StoreError) -> Value {
        permits.wait()
        defer { permits.signal() }
        guard let connection = state.withLock({ $0.free.popLast() }) else { throw StoreError.closed }
        defer { state.withLock { $0.free.append(connection) } }
        try connection.statement("BEGIN").run()
        defer { _ = try? connection.statement("COMMIT").run() }
        return try body(connection)
    }

    /// Runs a long read on a connection of its own. It ends with an error if the pool is closed.
    func readForLong<Value>(_ body: (SQLiteConnection) throws(StoreError) -> Value) throws(StoreError) -> Value {
        try checkOpen()
        let connection = try SQLiteConnection(path, errors: .read)
        longReads.enter()
        defer { longReads.leave() }
        state.withLock { $0.long.append(connection) }
        defer { state.withLock { state in state.long.removeAll { $0 === connection } } }
        do {
            try checkOpen()
            return try body(connection)
        } catch {
            try checkOpen()
            throw error
        }
    }

    func checkOpen() throws(StoreError) { if state.withLock(\.isClosed) { throw StoreError.closed } }

    /// Whether a long read keeps the log from starting again.
    var isReadForLong: Bool { state.withLock { !$0.long.isEmpty } }

    /// Runs `body` while no connection reads a page. One thread at a time calls it.
    func withGateClosed(_ body: () -> Void) {
        for _ in 0..<count { permits.wait() }
        defer { for _ in 0..<count { permits.signal() } }
        body()
    }

    /// Waits for the reads, and closes the connections. Later reads fail.
    func close() {
        state.withLock { state in
            state.isClosed = true
            for connection in state.long { sqlite3_interrupt(connection.pointer) }
        }
        withGateClosed { state.withLock { $0.free = [] } }
        longReads.wait()
    }
}
