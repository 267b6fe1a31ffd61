import Dispatch
import CSQLite
import JobModel
import Synchronization

/// Writes the log into the database on a thread and a connection of its own, while rounds go on.
///
/// As long as anything of the log is left over, it only grows. So there are three passes: one beside rounds and readers,
/// which writes nearly all; one beside rounds, without readers; and one between two rounds, for the little that they
/// committed meanwhile. Then the next round begins the log anew.
final class Checkpointer: Sendable {
    /// Free pages that stay in the database; of more the rest is given back to the file system.
    static let sparePages: Int64 = 1_024
    private static let shrinkStep = 256
    /// Pages in the log from which on it is written into the database..
    static let pages = 2_000
    /// .. and from which on rounds wait for that.
    static let mostPages = 10_000
    /// Pages for which the log has room from the start.
    static let fewPages = 500

    // Used on `queue` only, which runs one block at a time.
    private nonisolated(unsafe) var connection: SQLiteConnection?
    private let queue = DispatchQueue(label: "deferd.store.checkpoint", qos: .utility)
    private let isRunning = Atomic(false)
    private let mayShrink = Atomic(false)
    private let isFailing = Mutex(false)
    private let pool: ReadingPool
    private let rounds: RoundLock
    private let report: @Sendable (StoreError?) -> Void

    /// `report` is told once why the log cannot be written into the database, and with nil when it can again. Nothing is
    /// lost meanwhile, as the log is whole, but it grows with every commit.
    init(
        _ path: String, _ pool: ReadingPool, _ rounds: RoundLock, report: @escaping @Sendable (StoreError?) -> Void
    ) throws(StoreError) {
        self.pool = pool
        self.rounds = rounds
        self.report = report
        let connection = try SQLiteConnection(path, errors: .write)
        try Room.keepInChunks(connection)
        try connection.execute("PRAGMA wal_autocheckpoint = 0")
        // A connection that has read nothing knows of no log, and a checkpoint on it does nothing.
        _ = try connection.number("PRAGMA user_version")
        self.connection = connection
    }

    /// Begins to write the log, unless that is under way. Where there are many free pages (`shrinks`) some are given back
    /// before, in a round of its own, and then others after it.
    func start(shrinks: Bool = false) {
        if shrinks { mayShrink.store(true, ordering: .relaxed) }
        // It would come no further than the snapshot of such a read.
        guard !pool.isReadForLong, !isRunning.exchange(true, ordering: .relaxed) else { return }
        queue.async {
            guard self.connection != nil else { return }
            let isShrinking = self.mayShrink.exchange(false, ordering: .relaxed)
            if isShrinking, self.rounds.withLock({ self.shrink() }) { self.mayShrink.store(true, ordering: .relaxed) }
            self.pass()
            self.pool.withGateClosed {
                self.pass()
                self.rounds.withLock { self.pass() }
            }
            self.isRunning.store(false, ordering: .relaxed)
            if self.mayShrink.load(ordering: .relaxed) { self.start() }
        }
    }

    /// Gives some free pages back; true where there are more to give. Nothing depends on it.
    private func shrink() -> Bool {
        guard let connection, let before = try? connection.number("PRAGMA freelist_count"),
            before > Self.sparePages,
            (try? connection.execute("PRAGMA incremental_vacuum(\(Self.shrinkStep))")) != nil,
            let after = try? connection.number("PRAGMA freelist_count")
        else { return false }
        return after < before
    }

    private func pass() {
        guard let connection else { return }
        run { () throws(StoreError) in try connection.checkpoint(SQLITE_CHECKPOINT_PASSIVE) }
    }

    /// Runs a checkpoint, which may fail.
    func run(_ checkpoint: () throws(StoreError) -> Void) {
        do {
            try checkpoint()
        } catch {
            if change(to: true) { report(error) }
            return
        }
        if change(to: false) { report(nil) }
    }

    private func change(to now: Bool) -> Bool {
        isFailing.withLock { isFailing in
            defer { isFailing = now }
            return isFailing != now
        }
    }

    /// Waits for what is under way.
    func wait() { queue.sync {} }

    func close() { queue.sync { connection = nil } }
}

/// Held by a round, and by a checkpoint that is to find the log at rest.
final class RoundLock: Sendable {
    private let mutex = Mutex(())

    func withLock<Value>(_ body: () -> Value) -> Value { mutex.withLock { _ in body() } }
}
