package import JobModel

/// A round's transaction. What is written is kept in buffers, sorted and written before a query that it may concern, and
/// at the commit; so a job that is submitted and started in one round is one row written once.
final class SQLiteTransaction: SQLTransaction {
    let connection: SQLiteConnection
    /// The present one; all others are over.
    let life: Int64
    let damage: DamageReport
    private let room: Room
    let writes: JobWrites
    private let select: PreparedStatement
    private let selectKey: PreparedStatement
    var jobs = JobBuffer()
    /// The open lists that the round has read or changed; nil where there is none.
    var lists: [JobID: ListRow?] = [:]
    /// Those whose change is not in the database.
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
        writes = try JobWrites(connection)
        select = try connection.prepare("SELECT \(JobColumns.selected) FROM jobs WHERE id = ?1")
        selectKey = try connection.prepare(
            """
            SELECT id, digest FROM jobs INDEXED BY jobs_by_key \
            WHERE owner = ?1 AND key = ?2 AND key IS NOT NULL AND (keeps_key = 1 OR state < 4)
            """)
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
        try statement(
            "UPDATE state SET last_job = ?1, last_number = ?2", state.present.lastJob, state.present.lastNumber
        ).run()
    }

    /// To be called at the end of a round.
    func end(isCommitted: Bool) {
        isOpen = false
        if isCommitted { state.committed = state.present }
        jobs.removeAll()
        lists.removeAll()
        changedLists.removeAll()
    }

    /// Throws where the round has failed or is over.
    func check() throws(StoreError) {
        if let failure = connection.firstFailure { throw failure }
        guard isOpen else { throw StoreError.closed }
    }

    /// The statement for `sql` with these values, unless the round has failed or is over.
    func statement(_ sql: String, _ values: (any Bindable)?...) throws(StoreError) -> PreparedStatement {
        try statement(sql, values)
    }

    func statement(_ sql: String, _ values: [(any Bindable)?]) throws(StoreError) -> PreparedStatement {
        try check()
        return try connection.statement(sql, values)
    }

    func rows<Value>(
        _ sql: String, _ values: [(any Bindable)?], atMost limit: Int,
        _ read: (PreparedStatement) throws(StoreError) -> Value?
    ) throws(StoreError) -> [Value] {
        try statement(sql, values).rows(atMost: limit, read)
    }

    func write(_ sql: String, _ values: [(any Bindable)?]) throws(StoreError) { try statement(sql, values).run() }

    func name(_ text: String) -> any Bindable { text }

    /// No other node keeps anything in memory.
    func willChange(_ settings: SharedSettings) {}

    // MARK: Jobs

    /// A row is read in microseconds.
    func load(_ keys: @autoclosure () -> [RowKey]) throws(StoreError) { try check() }

    func job(_ id: JobID) throws(StoreError) -> JobRow? {
        try check()
        if let entry = jobs.entries[id] { return entry.change == .delete ? nil : entry.row }
        select.bind(id, at: 1)
        guard let found = try select.row(row) else { return nil }
        jobs.keep(found)
        return found
    }

    func document(of job: JobID) throws(StoreError) -> NewJobRow.Document? {
        if let entry = jobs.entries[job], entry.change == .insert || entry.change == .delete { return entry.document }
        let select = "SELECT \(JobColumns.document) FROM jobs WHERE id = ?1"
        return try statement(select, job).row { row throws(StoreError) in
            damage.legible("The spec of job \(job)", try NewJobRow.Document(row, from: 0))
        }
    }

    func insert(_ new: NewJobRow) throws(StoreError) -> Inserted {
        try check()
        try room.check()
        if let key = new.row.key, let taken = try holder(of: key, owner: new.row.owner) {
            return .taken(taken.job, isSame: taken.digest == new.digest)
        }
        state.present.lastJob += 1
        jobs.insert(new, as: state.present.lastJob)
        return .created(state.present.lastJob)
    }

    func holder(ofKey key: String, owner: UInt32) throws(StoreError) -> JobID? {
        try check()
        return try holder(of: key, owner: owner)?.job
    }

    private func holder(of key: String, owner: UInt32) throws(StoreError) -> (job: JobID, digest: UInt64)? {
        if let entry = jobs.holder(of: key, owner: owner), entry.row.holdsKey { return (entry.row.id, entry.digest) }
        selectKey.bind(owner, at: 1)
        selectKey.bind(key, at: 2)
        let found = try selectKey.row { row throws(StoreError) in
            (job: row.integer(0), digest: UInt64(bitPattern: row.integer(1)))
        }
        guard let found else { return nil }
        if jobs.holdsKey(found.job) { return found }
        // The index must not have two jobs with the key, not even for a moment.
        try flushJobs()
        return nil
    }

    func update(_ job: JobRow) throws(StoreError) {
        try check()
        // A later insert with the key must find it taken.
        let takesKey = job.holdsKey && jobs.entries[job.id]?.row.holdsKey == false
        jobs.update(job)
        if takesKey { try flushJobs() }
    }

    func replaceTerms(of job: JobRow, was old: JobRow) throws(StoreError) {
        try flushJobs()
        try writes.replaceTerms(of: job, tags: old.tags)
    }

    func delete(_ id: JobID) throws(StoreError) {
        guard let row = try job(id) else { return }
        hasDeleted = true
        jobs.delete(row)
    }

    func releaseKey(of job: JobID) throws(StoreError) {
        if jobs.entries[job]?.change == .insert { try flushJobs() }
        try statement("UPDATE jobs SET key = NULL, digest = NULL WHERE id = ?1", job).run()
    }

    func nextNumber() throws(StoreError) -> Int64 {
        try check()
        state.present.lastNumber += 1
        return state.present.lastNumber
    }

    // MARK: For queries

    /// To be called before a query for jobs.
    func flushJobs() throws(StoreError) {
        try check()
        guard !jobs.changed.isEmpty else { return }
        try writes.write(jobs)
        jobs.flushed()
    }

    /// The job in the present row; nil, after a report, if that is damaged.
    func row(_ row: PreparedStatement) throws(StoreError) -> JobRow? {
        damage.legible("Job \(JobColumns.id(row))", try JobColumns.row(row))
    }
}

extension NewJobRow.Document {
    /// What the columns `is_item` and `text` hold.
    package var stored: (isItem: Bool, text: [UInt8]) {
        switch self {
        case .spec(let text): (false, text)
        case .item(let value): (true, value.encoded)
        }
    }

    package init(_ row: some StoredColumns, from column: Int32) throws(DamagedRow) {
        if row.integer(column) == 0 {
            guard let text = row.bytes(column + 1) else { throw DamagedRow() }
            self = .spec(text)
        } else if let item = try row.value(column + 1) {
            self = .item(item)
        } else {
            throw DamagedRow()
        }
    }
}
