import JobModel
import JobStore

/// A round's transaction. What is written is kept in buffers, and sent, sorted and many rows to a statement, before a query
/// that it may concern, and before the commit. The server's answers are awaited only when something is read.
final class PostgreSQLTransaction: SQLTransaction {
    /// A job with a key in the database.
    struct Holder {
        let job: JobID
        let digest: UInt64
    }

    let damage: DamageReport
    private var connection: PostgreSQLConnection?
    var jobs = JobBuffer()
    /// Jobs that are not there.
    private var missing: Set<JobID> = []
    /// The jobs with keys that the round has asked for; nil where there is none.
    private var holders: [RowKey: Holder?] = [:]
    /// The open lists that the round has read or changed; nil where there is none.
    var lists: [JobID: ListRow?] = [:]
    /// Those whose change was not sent.
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

    /// Throws where the round has failed or is over.
    func check() throws(StoreError) {
        if let failure { throw failure }
        guard connection != nil else { throw StoreError.closed }
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
        _ read: (PostgreSQLRow) throws(StoreError) -> Value?
    ) throws(StoreError) -> [Value] {
        try query("\(sql) LIMIT ?\(values.count + 1)", values + [limit]).map(read)
    }

    func write(_ sql: String, _ values: (any Bindable)?...) throws(StoreError) { try write(sql, values) }

    func write(_ sql: String, _ values: [(any Bindable)?]) throws(StoreError) {
        try write(sql, values, changes: nil)
    }

    func name(_ text: String) -> any Bindable { Array(text.utf8) }

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
                "WITH \(Self.above) SELECT \(JobColumns.selected) FROM jobs WHERE id IN (SELECT job FROM above)", ids,
                isWanted: true)
            try connection.send(
                """
                WITH \(Self.above) \(Self.selectLists) WHERE job IN (SELECT unnest($1::bigint[]) UNION SELECT job FROM above)
                """, ids, isWanted: true)
            return try connection.finish()
        }
        guard found.count == 3 else { return }
        var known = wanted
        for rows in found[0...1] {
            known += try rows.map { row throws(StoreError) in
                if let job = self.row(row), jobs.entries[job.id] == nil { jobs.keep(job) }
                return JobColumns.id(row)
            }
        }
        for id in wanted where jobs.entries[id] == nil { missing.insert(id) }
        for id in known where lists[id] == nil { lists[id] = .some(nil) }
        _ = try found[2].map { row throws(StoreError) -> Bool? in
            guard let list = list(in: row), !changedLists.contains(list.job) else { return nil }
            lists[list.job] = list
            return nil
        }
    }

    private static let above = """
        RECURSIVE above (job) AS (
            SELECT parent FROM jobs WHERE id = ANY ($1) AND parent IS NOT NULL
            UNION SELECT parent FROM above JOIN jobs ON id = job WHERE parent IS NOT NULL
        )
        """

    func job(_ id: JobID) throws(StoreError) -> JobRow? {
        try check()
        if let entry = jobs.entries[id] { return entry.change == .delete ? nil : entry.row }
        if missing.contains(id) { return nil }
        guard let row = try rows("SELECT \(JobColumns.selected) FROM jobs WHERE id = $1", id).first.flatMap(row) else {
            missing.insert(id)
            return nil
        }
        jobs.keep(row)
        return row
    }

    func document(of job: JobID) throws(StoreError) -> NewJobRow.Document? {
        try check()
        if let entry = jobs.entries[job], entry.change == .insert || entry.change == .delete { return entry.document }
        guard let row = try rows("SELECT is_item, text FROM documents WHERE job = $1", job).first else { return nil }
        return damage.legible("The spec of job \(job)", try NewJobRow.Document(row, from: 0))
    }

    func insert(_ new: NewJobRow) throws(StoreError) -> Inserted {
        if let key = new.row.key, let taken = try holder(of: key, owner: new.row.owner) {
            return .taken(taken.job, isSame: taken.digest == new.digest)
        }
        let id = try call { connection throws(StoreError) in try ids.next(connection) }
        jobs.insert(new, as: id)
        missing.remove(id)
        return .created(id)
    }

    func holder(ofKey key: String, owner: UInt32) throws(StoreError) -> JobID? {
        try find([(owner, key)])
        return try holder(of: key, owner: owner)?.job
    }

    /// Finds the jobs that have these keys.
    private func find(_ keys: [(owner: UInt32, key: String)]) throws(StoreError) {
        let unknown = Set(keys.map { RowKey.key(owner: $0.owner, $0.key) }.filter { holders[$0] == nil })
        guard !unknown.isEmpty else { return try check() }
        let names = PostgreSQLRowArrays([.integer, .bytes])
        for case .key(let owner, let key) in unknown {
            names.bind(owner, at: 1)
            names.bind(Array(key.utf8), at: 2)
            names.endRow()
        }
        let found = try call { connection throws(StoreError) in
            return try connection.rows(
                """
                SELECT id, digest, owner, key FROM jobs JOIN \(names.table) AS names (owner, key) USING (owner, key) \
                WHERE key IS NOT NULL AND (keeps_key = 1 OR state < 4)
                """, names.parameters)
        }
        for key in unknown { holders[key] = .some(nil) }
        for row in 0..<found.count {
            let row = found[row]
            guard let owner = UInt32(exactly: row.integer(2)) else { continue }
            holders[.key(owner: owner, row.text(3) ?? "")] = Holder(
                job: row.integer(0), digest: UInt64(bitPattern: row.integer(1)))
        }
    }

    private func holder(of key: String, owner: UInt32) throws(StoreError) -> Holder? {
        if let entry = jobs.holder(of: key, owner: owner), entry.row.holdsKey {
            return Holder(job: entry.row.id, digest: entry.digest)
        }
        // A flush forgets what was found.
        try find([(owner, key)])
        guard let found = holders[.key(owner: owner, key)] ?? nil else { return nil }
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
        try replaceTerms(of: job, tags: old.tags)
        noteStart(job)
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

    // MARK: For queries

    /// To be called before a query for jobs.
    func flushJobs() throws(StoreError) {
        try check()
        guard !jobs.changed.isEmpty else { return }
        try writeJobs()
        for entry in jobs.changed where entry.change == .delete { missing.insert(entry.row.id) }
        jobs.flushed()
        holders.removeAll()
    }

    /// The job in a row; nil, after a report, if that is damaged.
    func row(_ row: PostgreSQLRow) -> JobRow? {
        damage.legible("Job \(JobColumns.id(row))", try JobColumns.row(row))
    }
}
