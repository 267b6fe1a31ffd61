import CSQLite
package import JobModel

/// Jobs in one SQLite database, in a directory that it locks. One connection carries out rounds; a few others read
/// (``reader``), and one writes the log into the database beside them.
///
/// Rounds are carried out, and the store is closed, by one thread at a time.
package final class SQLiteStore: JobStore, @unchecked Sendable {
    /// Counts the starts on this store; 1 for the first.
    package let life: Int64
    /// Whether the life before ended with a clean stop; so too before the first, and after a backup was put in place.
    package let isAfterCleanStop: Bool
    /// Whether the last daemon did not close the database: it was killed, or the machine ended.
    package let wasLeftOpen: Bool
    package let reader: SQLiteJobReader

    /// The directory of the engine's files, below that of the state.
    package var blobs: String { directory.blobs }

    private let directory: StateDirectory
    private let mark: StopMark
    private let connection: SQLiteConnection
    private let room: Room
    private let transaction: SQLiteTransaction
    private let pool: ReadingPool
    private let checkpointer: Checkpointer
    private let lock = RoundLock()
    private let settlement: Settlement
    private let beginning: PreparedStatement
    private let commit: PreparedStatement
    /// Where SQLite leaves the length of the log after each commit, in pages.
    private let logLength: UnsafeMutablePointer<Int32>
    private let stored: StoredNumbers
    private var isClosed = false
    private static let readers = 3

    /// Opens the database `deferd.db` in the directory `path`, or makes it there.
    ///
    /// `report` is called once for each row that is passed over because it is damaged, `reportLog` with the reason why the
    /// log cannot be written into the database, and with nil when it can again. Both may be called on any thread.
    package init(
        path: String, report: @escaping @Sendable (StoreError) -> Void = { _ in },
        reportLog: @escaping @Sendable (StoreError?) -> Void = { _ in }
    ) throws(StoreError) {
        deferd_settle_database()
        directory = try StateDirectory(path)
        let database = directory.database
        try NewDatabase.makeIfMissing(database)
        let hasLog = StateDirectory.size(database + "-wal") > 0
        StateCopy.remove(directory.backup)
        connection = try SQLiteConnection(database, errors: .write)
        try NewDatabase.inspect(connection)
        try connection.execute(
            """
            PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY;
            PRAGMA cache_size = -32768; PRAGMA secure_delete = FAST; PRAGMA journal_size_limit = 67108864
            """)
        // Writes what the last daemon left in the log into the database before more is appended.
        try connection.checkpoint(SQLITE_CHECKPOINT_TRUNCATE)
        guard deferd_gather_log(connection.pointer) == SQLITE_OK else { throw connection.failure() }
        let isRestored = try CopiedBlobs.takeOut(of: connection, to: directory.blobs)
        let damage = DamageReport(report)
        let state = try StoredNumbers(connection)
        mark = StopMark(directory.cleanStop)
        life = state.life + 1
        isAfterCleanStop = state.life == 0 || isRestored || mark.life == state.life
        wasLeftOpen = hasLog || !isAfterCleanStop
        stored = state
        try connection.execute("UPDATE state SET life = \(life)")
        room = try Room(connection)
        transaction = try SQLiteTransaction(connection, room, state.numbers, damage)
        settlement = try Settlement(connection, round: state.round)
        beginning = try connection.prepare("BEGIN IMMEDIATE")
        commit = try connection.prepare("COMMIT")
        pool = try ReadingPool(database, count: Self.readers)
        reader = SQLiteJobReader(pool, damage, directory)
        checkpointer = try Checkpointer(database, pool, lock, report: reportLog)
        logLength = .allocate(capacity: 1)
        logLength.initialize(to: 0)
        // Instead of SQLite's own hook, which would write the log into the database before a commit returns.
        sqlite3_wal_hook(
            connection.pointer,
            { logLength, _, _, pages in
                logLength?.assumingMemoryBound(to: Int32.self).pointee = pages
                return SQLITE_OK
            }, logLength)
    }

    deinit {
        sqlite3_wal_hook(connection.pointer, nil, nil)
        logLength.deallocate()
    }

    // MARK: Rounds

    package func round(_ body: (any JobTransaction) throws(StoreError) -> Void) -> RoundEnd {
        guard !isClosed else { return .undone(.closed) }
        let end = lock.withLock { carryOut(body) }
        switch end {
        case .committed: room.committed()
        case .undone(let error), .unknown(let error):
            room.failed(error)
            if error.isLackOfRoom { reclaimLogRoom() }
        }
        let pages = logLength.pointee
        let isSpacious = room.freePages > 2 * Checkpointer.sparePages
        // Where there is no more room, the log makes do with what it has.
        let isFull = room.isShort && pages >= Checkpointer.fewPages
        if pages >= Checkpointer.pages || isSpacious || isFull { checkpointer.start(shrinks: isSpacious) }
        if pages >= Checkpointer.mostPages || isFull { checkpointer.wait() }
        return end
    }

    private func carryOut(_ body: (any JobTransaction) throws(StoreError) -> Void) -> RoundEnd {
        transaction.begin()
        do {
            try settlement.finish()
            try beginning.run()
        } catch {
            transaction.end(isCommitted: false)
            return .undone(error)
        }
        do {
            try room.begin()
            try body(transaction)
            try transaction.flush()
            try room.have()
        } catch {
            undo()
            return .undone(error)
        }
        do {
            try commit.run()
        } catch {
            undo()
            guard error.leavesFateUnknown else { return .undone(error) }
            settlement.settle()
            return .unknown(error)
        }
        transaction.end(isCommitted: true)
        return .committed
    }

    private func undo() {
        transaction.end(isCommitted: false)
        // Some failures have undone the transaction already.
        if connection.isInTransaction { try? connection.execute("ROLLBACK") }
    }

    /// Writes all of the log into the database, so that the next commit takes up its room anew.
    private func reclaimLogRoom() {
        checkpointer.wait()
        pool.withGateClosed {
            checkpointer.run { () throws(StoreError) in try connection.checkpoint(SQLITE_CHECKPOINT_RESTART) }
        }
    }

    // MARK: The store itself

    /// Those whose queries a test looks at.
    var connections: [SQLiteConnection] { [connection] + pool.idle }

    /// What is added to the time since this boot to get the steady time. After another boot it is `fresh`, by the time of day,
    /// but never less than before.
    package func steadyAnchor(boot: String, fresh: SteadyTime) throws(StoreError) -> SteadyTime {
        if let anchor = stored.anchor, stored.boot == boot { return anchor }
        let anchor = max(fresh, stored.anchor ?? fresh)
        let update = try connection.prepare("UPDATE state SET anchor = ?1, boot = ?2")
        update.bind(anchor, at: 1)
        update.bind(boot, at: 2)
        try update.run()
        return anchor
    }

    /// Ends the use of the database; `isClean` says whether all that the engine had to store is stored.
    package func close(isClean: Bool) {
        guard !isClosed else { return }
        isClosed = true
        // It waits for readers, which are gone once the pool is closed.
        checkpointer.close()
        pool.close()
        try? connection.checkpoint(SQLITE_CHECKPOINT_TRUNCATE)
        if isClean { mark.set(life) }
        directory.unlock()
    }
}

/// What the table `state` has.
struct StoredNumbers {
    let numbers: Numbers
    let life: Int64
    let anchor: SteadyTime?
    let boot: String
    let round: Int64

    init(_ connection: SQLiteConnection) throws(StoreError) {
        let select = try connection.prepare(
            """
            SELECT max(last_job, coalesce((SELECT max(id) FROM jobs), 0)), last_number, life, anchor, round, boot FROM state
            """)
        let found = try select.row { row throws(StoreError) in
            (
                numbers: Numbers(lastJob: row.integer(0), lastNumber: row.integer(1)), life: row.integer(2),
                anchor: row.optionalInteger(3), round: row.integer(4), boot: row.text(5) ?? ""
            )
        }
        // Beyond this JSON has no room for them.
        let sensible: ClosedRange<Int64> = 0...1 << 53
        guard let found,
            [found.numbers.lastJob, found.numbers.lastNumber, found.life, found.round].allSatisfy(sensible.contains)
        else { throw StoreError.damaged(connection.path, "its numbers make no sense") }
        (numbers, life, anchor, round, boot) = (found.numbers, found.life, found.anchor, found.round, found.boot)
    }
}
