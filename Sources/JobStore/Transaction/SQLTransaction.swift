package import JobModel

/// Reads rows with SQL. Its parameters are `?1`, `?2` and so on.
package protocol SQLConnection {
    associatedtype Row: StoredColumns
    /// Returns the results of `read` for the rows of a query, at most `limit`, without nil.
    func rows<Value>(
        _ sql: String, _ values: [(any Bindable)?], atMost limit: Int, _ read: (Row) -> Value?
    ) throws(StoreError) -> [Value]
}

/// Reads rows with SQL that SQLite and PostgreSQL both understand, and reports damaged ones.
package protocol SQLRows: SQLConnection {
    var damage: DamageReport { get }
    /// Selects the document of a row of `jobs`.
    static var document: String { get }
}

extension SQLRows {
    /// The same without damaged rows, which are reported. The name of a row is the subject of a sentence.
    func rows<Value>(
        _ sql: String, _ values: [(any Bindable)?], atMost limit: Int, named name: (Row) -> String,
        _ read: (Row) throws(DamagedRow) -> Value
    ) throws(StoreError) -> [Value] {
        func legible(_ row: Row) -> Value? { damage.legible(name(row), try read(row)) }
        return try rows(sql, values, atMost: limit, legible)
    }
}

/// The reads and writes of a round that are the same in both databases.
package protocol SQLTransaction: JobTransaction, SQLRows {
    var jobs: JobBuffer { get set }
    /// The open lists that the round has read or changed; nil where there is none.
    var lists: [JobID: ListRow?] { get set }
    /// Those whose change is not in the database.
    var changedLists: Set<JobID> { get set }

    /// Throws where the round has failed or is over.
    func check() throws(StoreError)
    func write(_ sql: String, _ values: [(any Bindable)?]) throws(StoreError)
    /// Writes the changes in ``jobs`` into the database.
    func writeJobs() throws(StoreError)
    /// A new, higher id.
    func nextJob() throws(StoreError) -> JobID
    /// The job that has a key in the database.
    func stored(_ key: String, owner: UInt32) throws(StoreError) -> KeyHolder?
    /// The table of jobs, with the index that a query uses where that must be told.
    func jobs(_ index: String) -> String
    /// Selects what ``CountKey/count(_:)`` reads.
    static var selectCounts: String { get }
    /// To be called where a round changes what other nodes keep in memory.
    func willChange(_ settings: SharedSettings)
}

/// The settings that each node keeps in memory, by their numbers in the news.
package enum SharedSettings: Int64 {
    case queues = 1
    case schedules = 2
}

// MARK: Dependencies

extension SQLTransaction {
    package func addDependency(of job: JobID, on target: JobID) throws(StoreError) {
        try write("INSERT INTO dependencies (target, job) VALUES (?1, ?2) ON CONFLICT DO NOTHING", [target, job])
    }

    package func removeDependency(of job: JobID, on target: JobID) throws(StoreError) {
        try write("DELETE FROM dependencies WHERE target = ?1 AND job = ?2", [target, job])
    }

    package func dependents(of target: JobID, after: JobID, limit: Int) throws(StoreError) -> [JobID] {
        let select = "SELECT job FROM dependencies WHERE target = ?1 AND job > ?2 ORDER BY job"
        return try rows(select, [target, after], atMost: limit) { $0.integer(0) }
    }

    package func dependencies(of job: JobID, limit: Int) throws(StoreError) -> [JobID] {
        let select = "SELECT target FROM dependencies WHERE job = ?1 ORDER BY target"
        return try rows(select, [job], atMost: limit) { $0.integer(0) }
    }
}

// MARK: Checkpoints of transfers

extension SQLTransaction {
    package func save(checkpoint: [UInt8]?, of job: JobID, link: Int) throws(StoreError) {
        guard let checkpoint else {
            return try write("DELETE FROM checkpoints WHERE job = ?1 AND link = ?2", [job, link])
        }
        try write(
            """
            INSERT INTO checkpoints (job, link, text) VALUES (?1, ?2, ?3) \
            ON CONFLICT (job, link) DO UPDATE SET text = excluded.text
            """, [job, link, checkpoint])
    }

    package func checkpoints(of job: JobID, fromLink link: Int) throws(StoreError) -> [(link: Int, text: [UInt8])] {
        // A job that was deleted in this round has no checkpoints.
        try flushJobs()
        let select = "SELECT link, text FROM checkpoints WHERE job = ?1 AND link >= ?2 ORDER BY link"
        return try rows(select, [job, link], atMost: .max) { (Int($0.integer(0)), $0.bytes(1) ?? []) }
    }

    package func save(download: [UInt8], to path: String) throws(StoreError) {
        // PostgreSQL's indexes refuse long values, and with one the round of all users. Without a record, the next download begins
        // anew.
        guard path.utf8.count <= 2000 else { return try write("DELETE FROM downloads WHERE path = ?1", [path]) }
        // The new row gets the highest number.
        try write(
            """
            INSERT INTO downloads (path, number, record) \
            VALUES (?1, (SELECT coalesce(max(number), 0) + 1 FROM downloads), ?2) \
            ON CONFLICT (path) DO UPDATE SET number = excluded.number, record = excluded.record
            """, [path, download])
        try write("DELETE FROM downloads WHERE number <= (SELECT max(number) FROM downloads) - 100000", [])
    }
}

// MARK: Queues, counts and work

extension SQLTransaction {
    package func queues() throws(StoreError) -> [String: QueueOverrides] {
        let found = try rows(
            "SELECT name, record FROM queues", [], atMost: .max, named: { "The queue \"\(($0.text(0) ?? "").echoed)\"" }
        ) { row throws(DamagedRow) in
            (row.text(0) ?? "", try row.decoded(1) { coder throws(DamagedRow) in try QueueOverrides(nil, by: &coder) })
        }
        return Dictionary(found) { $1 }
    }

    package func put(_ overrides: QueueOverrides?, ofQueue name: String) throws(StoreError) {
        willChange(.queues)
        try write("DELETE FROM queues WHERE name = ?1", [name])
        guard let overrides else { return }
        let record = ByteCoder.bytes { coder throws(DamagedRow) in _ = try QueueOverrides(overrides, by: &coder) }
        try write("INSERT INTO queues (name, record) VALUES (?1, ?2)", [name, record])
    }

    package func counts() throws(StoreError) -> [CountKey: CountValue] {
        let counts = try rows(Self.selectCounts, [], atMost: .max, named: { _ in "A count of jobs" }) {
            row throws(DamagedRow) in try CountKey.count(row)
        }
        return Dictionary(counts) { $1 }
    }

    package func work(after: Int64, limit: Int) throws(StoreError) -> [WorkRow] {
        try work("id > ?1 ORDER BY id", [after], atMost: limit)
    }

    package func nextWork(ofOwnerAbove owner: UInt32?) throws(StoreError) -> WorkRow? {
        let condition = "kind <> \(WorkRow.Kind.removeParts.rawValue) AND owner > ?1 ORDER BY owner, id"
        return try work(condition, [owner.map(Int64.init) ?? -1], atMost: 1).first
    }

    private func work(
        _ condition: String, _ values: [(any Bindable)?], atMost limit: Int
    ) throws(StoreError) -> [WorkRow] {
        let select = "SELECT \(WorkRow.columns) FROM work WHERE \(condition)"
        return try rows(select, values, atMost: limit, named: { "The piece of work \($0.integer(0))" }) {
            row throws(DamagedRow) in try WorkRow(row)
        }
    }

    package func hasWork(_ kind: WorkRow.Kind, of job: JobID) throws(StoreError) -> Bool {
        let select = "SELECT 1 FROM work WHERE job = ?1 AND kind = ?2"
        return try !rows(select, [job, kind.rawValue], atMost: 1) { _ in true }.isEmpty
    }

    package func add(_ work: WorkRow) throws(StoreError) -> Int64 {
        let id = try nextNumber()
        try write(
            "INSERT INTO work (\(WorkRow.columns)) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            [id, work.kind.rawValue, work.job, work.owner, work.list, work.position, work.payload])
        return id
    }

    package func update(_ work: WorkRow) throws(StoreError) {
        try write("UPDATE work SET position = ?2 WHERE id = ?1", [work.id, work.position])
    }

    package func endWork(_ id: Int64) throws(StoreError) { try write("DELETE FROM work WHERE id = ?1", [id]) }
}
