import CSQLite
import Dispatch
package import JobModel
import Synchronization

/// Reads for clients and runs, each call in one snapshot on one of a few connections.
///
/// The log keeps what is committed after the snapshot of a reader, and would grow as long as there are readers. So the
/// checkpointer takes all their permits for a moment.
package final class SQLiteJobReader: SQLReader {
    private struct State {
        var free: [SQLiteConnection] = []
        /// The connections of long reads.
        var long: [SQLiteConnection] = []
        var isClosed = false
    }

    private static let count = 3

    let directory: StateDirectory
    package let damage: DamageReport
    private let state = Mutex(State())
    private let permits = DispatchSemaphore(value: count)
    private let longReads = DispatchGroup()

    init(_ directory: StateDirectory, _ damage: DamageReport) throws(StoreError) {
        self.directory = directory
        self.damage = damage
        for _ in 0..<Self.count {
            let connection = try SQLiteConnection(directory.database, errors: .read)
            try connection.execute("PRAGMA query_only = ON; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -8192")
            state.withLock { $0.free.append(connection) }
        }
    }

    package func read<Value>(_ body: (SQLiteConnection) throws(StoreError) -> Value) throws(StoreError) -> Value {
        permits.wait()
        defer { permits.signal() }
        guard let connection = state.withLock({ $0.free.popLast() }) else { throw StoreError.closed }
        defer { state.withLock { $0.free.append(connection) } }
        do throws(StoreError) {
            try connection.statement("BEGIN").run()
            defer { _ = try? connection.statement("COMMIT").run() }
            return try body(connection)
        } catch {
            if error.code == .damaged { damage.tell(error, once: error.message) }
            throw error
        }
    }

    /// Runs a long read on a connection of its own. It ends with an error if the reader is closed.
    func readForLong<Value>(_ body: (SQLiteConnection) throws(StoreError) -> Value) throws(StoreError) -> Value {
        longReads.enter()
        defer { longReads.leave() }
        do {
            let connection = try SQLiteConnection(directory.database, errors: .read)
            state.withLock { $0.long.append(connection) }
            defer { state.withLock { state in state.long.removeAll { $0 === connection } } }
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
        for _ in 0..<Self.count { permits.wait() }
        defer { for _ in 0..<Self.count { permits.signal() } }
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

    // MARK: SQL

    package static let document =
        "coalesce(jobs.text, (SELECT documents.text FROM documents WHERE documents.job = jobs.id))"
    package static let step = 1

    package static func isAmong(_ ids: [JobID]) -> (condition: String, ids: any Bindable) {
        // The other form takes a third more time.
        ids.count == 1 ? ("= ?1", ids[0]) : ("IN (SELECT value FROM json_each(?1))", "\(ids)")
    }
}
