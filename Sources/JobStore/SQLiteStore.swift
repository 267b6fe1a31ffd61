import CSQLite
package import JobModel

/// Keeps jobs in a SQLite database, in a directory that it locks. One connection runs rounds, a few read (``reader``), and
/// one writes the log into the database.
///
/// One thread at a time runs a round or closes the store.
package final class SQLiteStore: JobStore, @unchecked Sendable {
    /// The number of starts on this store, this one included.
    package let life: Int64
    /// Whether the life before ended cleanly, or there was none, or the database is a restored backup.
    package let isAfterCleanStop: Bool
    /// Whether the machine has started again since, which ``steadyAnchor(boot:fresh:)`` finds out.
    package private(set) var isAfterBoot = false
    /// Whether the last daemon did not close the database, as it or the machine crashed.
    package let wasLeftOpen: Bool
    package let reader: SQLiteJobReader

    /// The directory of the engine's files.
    package var blobs: String { directory.blobs }

    private let directory: StateDirectory
    let connection: SQLiteConnection
    private let room: Room
    private let transaction: SQLiteTransaction
    private let checkpointer: Checkpointer
    /// The pages of the log after the last commit.
    private var pages: Int32 = 0
    /// As the last daemon left it.
    private let state: StateRow
    /// Whether a commit failed while SQLite synced the log, and no later one has succeeded.
    private var isUnsettled = false
    private var isClosed = false

    /// Opens the database `deferd.db` in the directory `path`, or makes it there.
    ///
    /// `report` is called once for each damaged row, `reportLog` with the reason why the log cannot be written into the
    /// database, and with nil when it can be again. Both may be called on any thread.
    package init(
        path: String, report: @escaping @Sendable (StoreError) -> Void = { _ in },
        reportLog: @escaping @Sendable (StoreError?) -> Void = { _ in }
    ) throws(StoreError) {
        deferd_settle_database()
        directory = try StateDirectory(path)
        let database = directory.database
        try Schema.makeIfMissing(database)
        let hasLog = StateDirectory.size(database + "-wal") > 0
        StateDirectory.removeDatabase(directory.backup)
        connection = try SQLiteConnection(database, errors: .write)
        try Schema.inspect(connection)
        try connection.execute(
            """
            PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY; PRAGMA cache_spill = OFF;
            PRAGMA cache_size = -16384; PRAGMA secure_delete = FAST; PRAGMA journal_size_limit = 67108864
            """)
        // Writes the log of the last daemon into the database before it grows.
        try connection.checkpoint(SQLITE_CHECKPOINT_TRUNCATE)
        guard deferd_gather_log(connection.pointer) == SQLITE_OK else { throw connection.failure() }
        let damage = DamageReport(report)
        state = try StateRow.read(connection)
        if state.isCopy { try CopiedBlobs.takeOut(of: connection, to: directory.blobs) }
        life = state.life + 1
        isAfterCleanStop = state.life == 0 || state.isCopy || directory.lastCleanLife == state.life
        wasLeftOpen = hasLog || !isAfterCleanStop
        try connection.execute("UPDATE state SET life = \(life)")
        room = try Room(connection)
        transaction = try SQLiteTransaction(connection, room, state, damage, life: life)
        reader = try SQLiteJobReader(directory, damage)
        checkpointer = try Checkpointer(reader, report: reportLog)
        // Replaces SQLite's own hook, which would write the log into the database before a commit returns.
        sqlite3_wal_hook(
            connection.pointer,
            { store, _, _, pages in
                if let store { Unmanaged<SQLiteStore>.fromOpaque(store).takeUnretainedValue().pages = pages }
                return SQLITE_OK
            }, Unmanaged.passUnretained(self).toOpaque())
    }

    deinit { sqlite3_wal_hook(connection.pointer, nil, nil) }

    // MARK: Rounds

    package func round(_ body: (any JobTransaction) throws(StoreError) -> Void) -> RoundEnd {
        guard !isClosed else { return .undone(.closed) }
        let end = checkpointer.duringRound { carryOut(body) }
        // On a full disk, the log must not need more room than it has.
        var isFull = room.isShort && pages >= Checkpointer.fewPages
        switch end {
        case .committed: break
        case .undone(let error), .unknown(let error):
            if error.isLackOfRoom { (room.isShort, isFull) = (true, true) }
        }
        let isSpacious = room.freePages > 2 * Checkpointer.sparePages
        if pages >= Checkpointer.pages || isSpacious || isFull { checkpointer.start() }
        if pages >= Checkpointer.mostPages || isFull { checkpointer.wait() }
        return end
    }

    private func carryOut(_ body: (any JobTransaction) throws(StoreError) -> Void) -> RoundEnd {
        transaction.begin()
        do {
            try settleFate()
            try connection.statement("BEGIN IMMEDIATE").run()
            try body(transaction)
            try transaction.flush()
            try room.have()
        } catch {
            undo()
            return .undone(error)
        }
        do {
            try connection.statement("COMMIT").run()
        } catch {
            undo()
            guard error.leavesFateUnknown else { return .undone(error) }
            isUnsettled = true
            try? settleFate()
            return isUnsettled ? .unknown(error) : .undone(error)
        }
        transaction.end(isCommitted: true)
        return .committed
    }

    /// Settles the fate of a round whose commit failed. SQLite has rolled it back, but a crash may leave its frames in the log:
    /// a small commit overwrites the first of them, and the others are then no part of the log, as the checksum of each
    /// frame includes that of the frame before.
    private func settleFate() throws(StoreError) {
        guard isUnsettled else { return }
        try connection.statement("UPDATE state SET settlements = settlements + 1").run()
        isUnsettled = false
    }

    private func undo() {
        transaction.end(isCommitted: false)
        // SQLite rolls back after some failures by itself.
        if connection.isInTransaction { try? connection.execute("ROLLBACK") }
    }

    // MARK: The store itself

    /// The steady time at this boot. After a new boot it is `fresh`, from the time of day, but never less than before.
    package func steadyAnchor(boot: String, fresh: SteadyTime) throws(StoreError) -> SteadyTime {
        if let anchor = state.anchor, state.boot == boot { return anchor }
        isAfterBoot = state.anchor != nil
        let anchor = max(fresh, state.anchor ?? fresh)
        try connection.statement("UPDATE state SET anchor = ?1, boot = ?2", [anchor, boot]).run()
        return anchor
    }

    /// Closes the database; `isClean` says whether the engine has stored everything.
    package func close(isClean: Bool) {
        guard !isClosed else { return }
        isClosed = true
        // The checkpointer waits for readers, which end when it closes.
        checkpointer.close()
        reader.close()
        try? connection.checkpoint(SQLITE_CHECKPOINT_TRUNCATE)
        if isClean { directory.recordCleanStop(of: life) }
        directory.unlock()
    }
}

/// The row of the table `state`.
struct StateRow {
    /// The last numbers that were given to a job and to a list.
    var lastJob: JobID
    var lastNumber: Int64
    let life: Int64
    /// The steady time at the start of a boot of the machine.
    let anchor: SteadyTime?
    let boot: String
    /// Whether the database is a copy that was restored, and no daemon has opened it since.
    let isCopy: Bool

    static func read(_ connection: SQLiteConnection) throws(StoreError) -> StateRow {
        let select = """
            SELECT max(last_job, coalesce((SELECT max(id) FROM jobs), 0)), \
            max(last_number, coalesce((SELECT max(id) FROM work), 0)), life, anchor, boot, is_copy FROM state
            """
        let found = try connection.statement(select).row { row in
            StateRow(
                lastJob: row.integer(0), lastNumber: row.integer(1), life: row.integer(2),
                anchor: row.optionalInteger(3), boot: row.text(4) ?? "", isCopy: row.integer(5) != 0)
        }
        // JSON numbers are exact up to here.
        guard let found, [found.lastJob, found.lastNumber, found.life].allSatisfy({ (0...1 << 53).contains($0) }) else {
            throw StoreError.damaged(connection.path, "its numbers make no sense")
        }
        return found
    }
}
