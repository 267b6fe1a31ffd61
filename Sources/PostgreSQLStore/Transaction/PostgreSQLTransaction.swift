import JobModel
import JobStore

/// A round's transaction. What is written is kept in buffers, and sent, sorted and many rows to a statement, before a query
/// that it may concern, and before the commit. The server's answers are awaited only when something is read.
///
/// The server keeps the plan of a statement. One that was made while a table was empty may read the whole table each time, if
/// it joins that to an array. So statements look up each element of an array, or as many rows at most.
final class PostgreSQLTransaction: SQLTransaction {
    let damage: DamageReport
    private var connection: PostgreSQLConnection?
    var jobs = JobBuffer()
    /// Jobs that are not there.
    var missing: Set<JobID> = []
    /// The jobs with keys that the round has asked for; nil where there is none.
    var holders: [RowKey: KeyHolder?] = [:]
    var lists: [JobID: ListRow?] = [:]
    var changedLists: Set<JobID> = []
    private var ids = NumberBlock("job_ids")
    private var numbers = NumberBlock("numbers")
    private var failure: StoreError?
    private(set) var turn: Turn?
    /// What other nodes must know of the round.
    var touched: Set<JobID> = []
    var endedWork: [Int64] = []
    var flags: Int64 = 0
    /// The first job that has become ready in the round.
    private var firstReady: ReadyPosition?
    /// The first time for which a job has begun to wait in the round.
    private var firstDue: SteadyTime?
    var starts = IndexStarts()
    /// Whether the round has to be committed.
    private(set) var hasWritten = false
    /// Whether the round has asked for the news; another one does not count as having heard them.
    private(set) var hasAskedForNews = false

    /// Of jobs that are bound to a node, only those of this one are ready.
    let node: String

    init(_ damage: DamageReport, node: String) { (self.damage, self.node) = (damage, node) }

    // MARK: The round

    /// Whether a round is under way.
    var isOpen: Bool { connection != nil }

    /// To be called at the start of a round, once its transaction was begun.
    func begin(_ connection: PostgreSQLConnection, _ turn: Turn) {
        (self.connection, self.turn, failure) = (connection, turn, nil)
        (hasWritten, hasAskedForNews) = (turn.hasWritten, false)
        if let first = turn.firstReady { starts.lower(to: first) }
        if let first = turn.firstDue { starts.lower(to: first) }
        guard turn.hasOthers else { return }
        // New jobs have higher numbers than those of all rounds before. A round that was undone gave none back.
        ids.forget()
        numbers.forget()
    }

    func news() throws(StoreError) -> News? {
        try check()
        hasAskedForNews = true
        return turn?.news
    }

    /// To be called at the end of a round.
    func end() {
        connection = nil
        (touched, endedWork, flags, firstReady, firstDue) = ([], [], 0, nil, nil)
        jobs.removeAll()
        missing.removeAll()
        holders.removeAll()
        lists.removeAll()
        changedLists.removeAll()
    }

    /// Sends all that is left, and what other nodes must know of it.
    func flush(life: Int64) throws(StoreError) {
        try check()
        try flushJobs()
        try flushLists()
        guard let turn, turn.hasOthers, hasWritten else { return }
        try call { connection throws(StoreError) in
            try ids.giveBack(connection)
            try numbers.giveBack(connection)
        }
        try write(
            """
            INSERT INTO news (number, life, flags, jobs, work, ready_priority, ready_id, due) \
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
            """, turn.number, life, flags, touched.sorted().flatMap(\.bigEndianBytes),
            endedWork.flatMap(\.bigEndianBytes), firstReady?.priority, firstReady?.id, firstDue)
    }

    /// Notes that a job is ready or waits for a time, or may do so from now on, once it is sent.
    func noteStart(_ job: JobRow) {
        if !job.state.isTerminal, let due = [job.due, job.deadline].compactMap(\.self).min() {
            firstDue = min(firstDue ?? due, due)
            starts.lower(to: due)
        }
        guard job.isReady else { return }
        firstReady = min(firstReady ?? job.position, job.position)
        starts.lower(to: job.position)
    }

    func check() throws(StoreError) {
        if let failure { throw failure }
        guard isOpen else { throw StoreError.closed }
    }

    /// The connection inside the transaction; remembers a failure of `body`.
    private func call<Value>(_ body: (PostgreSQLConnection) throws(StoreError) -> Value) throws(StoreError) -> Value {
        try check()
        guard let connection else { throw StoreError.closed }
        do {
            return try body(connection)
        } catch {
            failure = error
            throw error
        }
    }

    func rows(_ sql: String, _ values: (any Bindable)?...) throws(StoreError) -> PostgreSQLRows {
        try query(sql, values)
    }

    func query(_ sql: String, _ values: [(any Bindable)?]) throws(StoreError) -> PostgreSQLRows {
        try call { connection throws(StoreError) in try connection.rows(sql, values) }
    }

    func rows<Value>(
        _ sql: String, _ values: [(any Bindable)?], atMost limit: Int,
        _ read: (PostgreSQLRow) -> Value?
    ) throws(StoreError) -> [Value] {
        try call { connection throws(StoreError) in try connection.rows(sql, values, atMost: limit, read) }
    }

    func write(_ sql: String, _ values: (any Bindable)?...) throws(StoreError) { try write(sql, values) }

    func write(_ sql: String, _ values: [(any Bindable)?]) throws(StoreError) {
        try write(sql, values, changes: nil)
    }

    static var document: String { PostgreSQLJobReader.document }

    func jobs(_ index: String) -> String { "jobs" }

    func willChange(_ settings: SharedSettings) { flags |= settings.rawValue }

    func endWork(_ id: Int64) throws(StoreError) {
        endedWork.append(id)
        try write("DELETE FROM work WHERE id = $1", id)
    }

    func write(_ sql: String, _ values: [(any Bindable)?], changes: Int?) throws(StoreError) {
        hasWritten = true
        try call { connection throws(StoreError) in try connection.send(sql, values, changes: changes) }
    }

    // MARK: Jobs

    func load(_ keys: @autoclosure () -> [RowKey]) throws(StoreError) {
        var wanted: [JobID] = []
        var names: [(owner: UInt32, key: String)] = []
        for key in keys() {
            switch key {
            case .job(let id): if jobs.entries[id] == nil, !missing.contains(id) { wanted.append(id) }
            case .key(let owner, let name): names.append((owner, name))
            case .schedule: break
            }
        }
        try find(names)
        guard !wanted.isEmpty else { return try check() }
        let found = try call { connection throws(StoreError) in
            let ids = [PostgreSQLParameter.array(wanted)]
            try connection.send("SELECT \(JobColumns.selected) FROM jobs WHERE id = ANY ($1)", ids, isWanted: true)
            // Decisions about a job look at those above it, and at its own list and theirs.
            try connection.send(
                "WITH \(Self.above) SELECT \(JobColumns.selected) FROM jobs WHERE id = ANY (ARRAY(SELECT job FROM above))",
                ids, isWanted: true)
            try connection.send(
                "WITH \(Self.above) \(Self.selectLists) WHERE job = ANY ($1 || ARRAY(SELECT job FROM above))", ids,
                isWanted: true)
            return try connection.finish()
        }
        guard found.count == 3 else { return }
        var known = wanted
        for rows in found[0...1] {
            known += rows.map { row in
                if let job = legible(row), jobs.entries[job.id] == nil { jobs.keep(job) }
                return JobColumns.id(row)
            }
        }
        for id in wanted where jobs.entries[id] == nil { missing.insert(id) }
        for id in known where lists[id] == nil { lists[id] = .some(nil) }
        for list in found[2].map(list(in:)) where !changedLists.contains(list.job) { lists[list.job] = list }
    }

    private static let above = """
        RECURSIVE above (job) AS (
            SELECT (SELECT parent FROM jobs WHERE id = wanted) FROM unnest($1) AS wanted
            UNION SELECT (SELECT parent FROM jobs WHERE id = job) FROM above WHERE job IS NOT NULL
        )
        """

    func job(_ id: JobID) throws(StoreError) -> JobRow? {
        try check()
        if let entry = jobs.entries[id] { return entry.change == .delete ? nil : entry.row }
        if missing.contains(id) { return nil }
        guard let row = try rows("SELECT \(JobColumns.selected) FROM jobs WHERE id = $1", id).first.flatMap(legible)
        else {
            missing.insert(id)
            return nil
        }
        jobs.keep(row)
        return row
    }

    func nextJob() throws(StoreError) -> JobID {
        let id = try call { connection throws(StoreError) in try ids.next(connection) }
        missing.remove(id)
        return id
    }

    /// Finds the jobs that have these keys.
    private func find(_ keys: [(owner: UInt32, key: String)]) throws(StoreError) {
        let unknown = Set(keys.map { RowKey.key(owner: $0.owner, $0.key) }.filter { holders[$0] == nil })
        guard !unknown.isEmpty else { return try check() }
        let names = PostgreSQLRowArrays([.integer, .bytes])
        for case .key(let owner, let key) in unknown {
            names.bind(Int64(owner), at: 1)
            names.bind(key, at: 2)
            names.endRow()
        }
        let found = try call { connection throws(StoreError) in
            return try connection.rows(
                """
                SELECT id, digest, names.owner, names.key FROM \(names.table) AS names (owner, key), LATERAL (\
                SELECT id, digest FROM jobs WHERE (owner, key) = (names.owner, names.key) \
                AND key IS NOT NULL AND (keeps_key = 1 OR state < 4) LIMIT 1) AS found
                """, names.parameters)
        }
        for key in unknown { holders[key] = .some(nil) }
        for row in 0..<found.count {
            let row = found[row]
            guard let owner = UInt32(exactly: row.integer(2)) else { continue }
            holders[.key(owner: owner, row.text(3) ?? "")] = (row.integer(0), UInt64(bitPattern: row.integer(1)))
        }
    }

    func stored(_ key: String, owner: UInt32) throws(StoreError) -> KeyHolder? {
        try find([(owner, key)])
        return holders[.key(owner: owner, key)] ?? nil
    }

    func delete(_ id: JobID) throws(StoreError) {
        guard let row = try job(id) else { return }
        jobs.delete(row)
    }

    func releaseKey(of job: JobID) throws(StoreError) {
        if jobs.entries[job]?.change == .insert { try flushJobs() }
        holders.removeAll()
        try write("UPDATE jobs SET key = NULL, digest = NULL WHERE id = $1", job)
    }

    func nextNumber() throws(StoreError) -> Int64 {
        // A round that only takes a number is to try a commit.
        hasWritten = true
        return try call { connection throws(StoreError) in try numbers.next(connection) }
    }
}
