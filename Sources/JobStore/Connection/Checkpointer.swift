import CSQLite
import Dispatch
import JobModel
import Synchronization

/// Writes the log into the database on a thread and a connection of its own, while rounds continue.
///
/// SQLite starts the log again from its beginning only once all of it is in the database. So there are three passes: one
/// beside rounds and readers, which writes nearly everything; one beside rounds, without readers; and one between two
/// rounds, for the little that they committed meanwhile.
final class Checkpointer: Sendable {
    /// Free pages that stay in the database; the file system gets the others back.
    static let sparePages: Int64 = 1_024
    private static let shrinkStep = 256
    /// The pages in the log from which on it is written into the database ..
    static let pages = 8_000
    /// .. and from which on rounds wait for that.
    static let mostPages = 20_000
    /// Pages for which the log reserves room.
    static let fewPages = 500

    // Used on `queue` only, which runs one block at a time.
    private nonisolated(unsafe) var connection: SQLiteConnection?
    private nonisolated(unsafe) var isFailing = false
    private let queue = DispatchQueue(label: "deferd.store.checkpoint", qos: .utility)
    private let isRunning = Atomic(false)
    /// Held by each round, and by the last pass.
    private let round = Mutex(())
    private let reader: SQLiteJobReader
    private let report: @Sendable (StoreError?) -> Void

    /// `report` is called once with the reason why the log cannot be written into the database, and with nil when it can be
    /// again. No data is lost meanwhile, but the log grows with every commit.
    init(_ reader: SQLiteJobReader, report: @escaping @Sendable (StoreError?) -> Void) throws(StoreError) {
        self.reader = reader
        self.report = report
        let connection = try SQLiteConnection(reader.directory.database, errors: .write)
        try Room.keepInChunks(connection)
        try connection.execute("PRAGMA wal_autocheckpoint = 0")
        // A checkpoint does nothing on a connection that has not read, as it does not know the log.
        _ = try connection.number("PRAGMA user_version")
        self.connection = connection
    }

    /// Runs a round, which no last pass interrupts.
    func duringRound<Value>(_ body: () -> Value) -> Value { round.withLock { _ in body() } }

    /// Starts writing the log unless that is under way, and gives back free pages as long as there are many.
    func start() {
        // A checkpoint stops at the snapshot of a long read.
        guard !reader.isReadForLong, !isRunning.exchange(true, ordering: .relaxed) else { return }
        queue.async {
            guard self.connection != nil else { return }
            self.write()
            self.reader.withGateClosed {
                self.write()
                self.duringRound(self.write)
            }
            self.isRunning.store(false, ordering: .relaxed)
            if self.duringRound(self.shrink) { self.start() }
        }
    }

    /// Gives some free pages back; returns true if there are fewer. Nothing depends on it.
    private func shrink() -> Bool {
        guard let connection, let before = try? connection.number("PRAGMA freelist_count"), before > Self.sparePages,
            (try? connection.execute("PRAGMA incremental_vacuum(\(Self.shrinkStep))")) != nil,
            let after = try? connection.number("PRAGMA freelist_count")
        else { return false }
        return after < before
    }

    private func write() {
        var failure: StoreError?
        do { try connection?.checkpoint(SQLITE_CHECKPOINT_PASSIVE) } catch { failure = error }
        if (failure != nil) != isFailing { report(failure) }
        isFailing = failure != nil
    }

    func wait() { queue.sync {} }

    func close() { queue.sync { connection = nil } }
}
