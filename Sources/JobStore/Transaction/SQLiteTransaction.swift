import JobModel

/// A round's transaction. What is written is kept in buffers, sorted and written before a query that it may concern, and
/// at the commit; so a job that is submitted and started in one round is one row written once.
final class SQLiteTransaction: SQLTransaction {
    let connection: SQLiteConnection
    /// The present one; all others are over.
    let life: Int64
    let damage: DamageReport
    private let room: Room
    let insertJobs: RowInserts
    let insertTags: RowInserts
    let updateJob: PreparedStatement
    private let select: PreparedStatement
    private let selectKey: PreparedStatement
    var jobs = JobBuffer()
    var lists: [JobID: ListRow?] = [:]
    var changedLists: Set<JobID> = []
    /// As the last commit left it, and as this round does.
    private var state: (committed: StateRow, present: StateRow)
    private var isOpen = false
    /// Whether this round has deleted a job, so that the last number given is not that of the last row any more.
    private var hasDeleted = false

    init(
        _ connection: SQLiteConnection, _ room: Room, _ state: StateRow, _ damage: DamageReport, life: Int64
    ) throws(StoreError) {
        self.connection = connection
        self.life = life
        self.room = room
        self.damage = damage
        self.state = (state, state)
        insertJobs = try RowInserts(into: "jobs", JobColumns.all + ["text"], on: connection)
        insertTags = try RowInserts("INSERT OR IGNORE", into: "tags", ["owner", "tag", "job"], on: connection)
        updateJob = try PreparedStatement(JobColumns.update, on: connection)
        select = try PreparedStatement("SELECT \(JobColumns.selected) FROM jobs WHERE id = ?1", on: connection)
        selectKey = try PreparedStatement(
            """
            SELECT id, digest FROM jobs INDEXED BY jobs_by_key \
            WHERE owner = ?1 AND key = ?2 AND key IS NOT NULL AND (keeps_key = 1 OR state < 4)
            """, on: connection)
    }

    // MARK: The round

    /// To be called at the start of a round.
    func begin() {
        connection.firstFailure = nil
        state.present = state.committed
        (isOpen, hasDeleted) = (true, false)
    }

    /// Writes all that is left.
    func flush() throws(StoreError) {
        try check()
        try flushJobs()
        try flushLists()
        guard hasDeleted || state.present.lastNumber != state.committed.lastNumber else { return }
        try write(
            "UPDATE state SET last_job = ?1, last_number = ?2", [state.present.lastJob, state.present.lastNumber])
    }

    /// To be called at the end of a round.
    func end(isCommitted: Bool) {
        isOpen = false
        if isCommitted { state.committed = state.present }
        jobs.removeAll()
        lists.removeAll()
        changedLists.removeAll()
    }

    func check() throws(StoreError) {
        if let failure = connection.firstFailure { throw failure }
        guard isOpen else { throw StoreError.closed }
    }

    func rows<Value>(
        _ sql: String, _ values: [(any Bindable)?], atMost limit: Int,
        _ read: (PreparedStatement) -> Value?
    ) throws(StoreError) -> [Value] {
        try check()
        return try connection.rows(sql, values, atMost: limit, read)
    }

    func write(_ sql: String, _ values: [(any Bindable)?]) throws(StoreError) {
        try check()
        try connection.statement(sql, values).run()
    }

    static var document: String { SQLiteJobReader.document }

    func jobs(_ index: String) -> String { "jobs INDEXED BY \(index)" }

    /// No other node keeps anything in memory.
    func willChange(_ settings: SharedSettings) {}

    // MARK: Jobs

    func job(_ id: JobID) throws(StoreError) -> JobRow? {
        try check()
        if let entry = jobs.entries[id] { return entry.change == .delete ? nil : entry.row }
        select.bind(id, at: 1)
        guard let found = try select.row(legible) else { return nil }
        jobs.keep(found)
        return found
    }

    func nextJob() throws(StoreError) -> JobID {
        try room.check()
        state.present.lastJob += 1
        return state.present.lastJob
    }

    func stored(_ key: String, owner: UInt32) throws(StoreError) -> KeyHolder? {
        selectKey.bind([owner, key])
        return try selectKey.row { (job: $0.integer(0), digest: UInt64(bitPattern: $0.integer(1))) }
    }

    func delete(_ id: JobID) throws(StoreError) {
        guard let row = try job(id) else { return }
        hasDeleted = true
        jobs.delete(row)
    }

    func releaseKey(of job: JobID) throws(StoreError) {
        if jobs.entries[job]?.change == .insert { try flushJobs() }
        try write("UPDATE jobs SET key = NULL, digest = NULL WHERE id = ?1", [job])
    }

    func nextNumber() throws(StoreError) -> Int64 {
        try check()
        state.present.lastNumber += 1
        return state.present.lastNumber
    }
}
