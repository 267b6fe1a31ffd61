import CSQLite
import Dispatch
import GRDB
package import JobModel
import Synchronization

/// The job store in one SQLite database, in a directory that it locks.
///
/// One connection writes, in groups (``CommitQueue``); a few others read. The write-ahead log is synced at every commit.
package final class SQLiteStore: JobStore {
    let pool: DatabasePool
    let queue: CommitQueue
    let directory: StateDirectory
    let unreadable: UnreadableJobs
    let marks: CrashMarks
    let isClosed = Mutex(false)
    /// The reads under way.
    let reads = DispatchGroup()
    /// Those that wait for one of the reading connections, which users share.
    let turns = Mutex(TurnQueue<@Sendable () -> Void>(perUser: SQLiteStore.readers - 1, total: SQLiteStore.readers))
    private static let readers = 3
    let backups = DispatchQueue(label: "deferd.backup", qos: .utility)
    /// Whether a backup is being made, or was and is still read.
    let isBackingUp = Flag()

    /// Whether the last daemon did not close the database: it was killed, or the machine ended.
    package let wasLeftOpen: Bool
    /// The connection of the check that is under way (``SQLiteStore/check(_:)``).
    let checking = Mutex<DatabaseQueue?>(nil)

    /// Opens the database `deferd.db` in the directory `path`, or makes it there.
    ///
    /// `report` is called once for each job that a list had to leave out because its row cannot be read, `reportLog`
    /// with the reason why the log cannot be written into the database, and with nil when it can again.
    package convenience init(
        path: String, report: @escaping @Sendable (StoreError) -> Void = { _ in },
        reportLog: @escaping @Sendable (StoreError?) -> Void = { _ in }
    ) throws(StoreError) {
        try self.init(path: path, bound: CommitQueue.Bound(), report: report, reportLog: reportLog)
    }

    init(
        path: String, bound: CommitQueue.Bound, report: @escaping @Sendable (StoreError) -> Void = { _ in },
        reportLog: @escaping @Sendable (StoreError?) -> Void = { _ in }
    ) throws(StoreError) {
        deferd_settle_database()
        directory = try StateDirectory(path)
        unreadable = UnreadableJobs(report)
        do {
            if try !DatabaseHeader.check(directory.database) { try NewDatabase.make(directory.database) }
            Self.removeBackup(directory.backup)
            wasLeftOpen = try DatabaseHeader.logLength(of: directory.database) > 0
            pool = try Self.open(directory)
            queue = try CommitQueue(
                pool, bound: bound, report: CheckpointReport(database: directory.database, reportLog))
        } catch {
            throw StoreError(.write, error, database: directory.database)
        }
        marks = CrashMarks(directory.marks, report: report)
    }

    private static func open(_ directory: StateDirectory) throws -> DatabasePool {
        let path = directory.database
        var configuration = Configuration()
        // More would need a priority that only root may have.
        configuration.qos = .default
        configuration.label = "deferd.store"
        configuration.foreignKeysEnabled = false
        configuration.maximumReaderCount = readers
        configuration.busyMode = .timeout(10)
        configuration.prepareDatabase { connection in
            // Before anything is written.
            if let missing = try Schema.missing(from: connection) {
                throw StoreError.otherVersion(path, "does not have what \(missing) makes")
            }
            try connection.execute(sql: "PRAGMA temp_store = MEMORY; PRAGMA cache_size = -8192")
            try Room.keepInChunks(connection)
        }
        let pool = try DatabasePool(path: path, configuration: configuration)
        try pool.writeWithoutTransaction { connection in
            // After the pool has set it to NORMAL.
            try connection.execute(
                sql: """
                    PRAGMA synchronous = FULL; PRAGMA cache_size = -32768; PRAGMA secure_delete = FAST;
                    PRAGMA journal_size_limit = 67108864;
                    """)
            // Writes what the last daemon left in the log into the database before more is appended.
            try connection.checkpoint(.truncate)
            try BackupBodies.unpack(connection, to: directory.bodies)
        }
        Room.keepForLog(of: path)
        return pool
    }

    // MARK: Writing

    package func save(
        checkpoint: JSON?, of job: JobID, link: Int, _ done: @escaping @Sendable (Result<Void, StoreError>) -> Void
    ) {
        enqueue(done) { try $0.save(checkpoint: checkpoint, of: job, link: link) }
    }

    package func save(
        download: JSON, to path: String, _ done: @escaping @Sendable (Result<Void, StoreError>) -> Void
    ) {
        enqueue(done) { try $0.save(download: download, to: path) }
    }

    func enqueue<Value: Sendable>(
        _ done: @escaping @Sendable (Result<Value, StoreError>) -> Void,
        _ body: @escaping @Sendable (Writer) throws -> Value
    ) {
        queue.enqueue(
            CommitQueue.Change(
                run: { writer in
                    let value = try body(writer)
                    return .done { done(.success(value)) }
                },
                fail: { done(.failure($0)) }))
    }

    // MARK: Closing

    package func close() async {
        isClosed.withLock { $0 = true }
        checking.withLock { $0?.interrupt() }
        marks.clear()
        await withCheckedContinuation { continuation in
            queue.close(after: reads) {
                self.directory.unlock()
                continuation.resume()
            }
        }
    }
}
