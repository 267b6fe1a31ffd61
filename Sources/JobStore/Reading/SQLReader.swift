package import JobModel

/// The reads that are the same in both databases.
package protocol SQLReader: JobReader, SQLRows where Row == Connection.Row {
    associatedtype Connection: SQLConnection
    /// Runs `body` in one snapshot, on a connection that no other thread uses.
    func read<Value>(_ body: (Connection) throws(StoreError) -> Value) throws(StoreError) -> Value
    /// Jobs that are read together, as their texts may be long.
    static var step: Int { get }
    /// Compares an id with the parameter ?1, which has the value `ids`.
    static func isAmong(_ ids: [JobID]) -> (condition: String, ids: any Bindable)
    /// The first jobs that a filter selects, below a visible parent, and the last one that was tested; nil if there are no more.
    static func ids(
        _ filter: JobFilter, atMost limit: Int, on connection: Connection
    ) throws(StoreError) -> (ids: [JobID], end: JobID?)
}

extension SQLReader {
    /// The bytes of the texts that are in memory together; the last job may exceed it.
    private static var pageSize: Int { 2 << 20 }

    /// Selects what ``StoredJob/init(_:)`` reads.
    static var selectJobs: String {
        """
        SELECT \(JobColumns.selected), \(document), \
        (SELECT template FROM templates WHERE templates.job = parent AND templates.list = jobs.list) FROM jobs
        """
    }

    /// Whether no job above a row of `jobs` is being removed or gone, and neither is that itself.
    private static var isVisible: String {
        """
        jobs.removing = 0 AND (jobs.parent IS NULL OR NOT EXISTS (
            WITH RECURSIVE above (job) AS (
                SELECT jobs.parent UNION
                SELECT upper.parent FROM above JOIN jobs AS upper ON upper.id = job WHERE upper.parent IS NOT NULL
            )
            SELECT 1 FROM above LEFT JOIN jobs AS upper ON upper.id = job WHERE upper.removing IS DISTINCT FROM 0
        ))
        """
    }

    package func rows<Value>(
        _ sql: String, _ values: [(any Bindable)?], atMost limit: Int, _ read: (Row) -> Value?
    ) throws(StoreError) -> [Value] {
        try self.read { connection throws(StoreError) in try connection.rows(sql, values, atMost: limit, read) }
    }

    package func job(_ id: JobID) throws(StoreError) -> StoredJob? { try jobs([id]).first }

    package func jobs(_ ids: [JobID]) throws(StoreError) -> [StoredJob] {
        var room = Self.pageSize
        return try read { connection throws(StoreError) in try jobs(ids, on: connection, &room) }
    }

    package func page(_ filter: JobFilter) throws(StoreError) -> (jobs: [StoredJob], endsEarly: Bool) {
        var (jobs, room): ([StoredJob], Int) = ([], Self.pageSize)
        try forEach(filter) { connection, ids throws(StoreError) in
            jobs += try self.jobs(ids, on: connection, &room)
            return room > 0 ? filter.limit - jobs.count : 0
        }
        return (jobs, room <= 0)
    }

    package func ids(_ filter: JobFilter) throws(StoreError) -> [JobID] {
        var all: [JobID] = []
        try forEach(filter) { _, ids in
            all += ids
            return filter.limit - all.count
        }
        return all
    }

    /// The existing ones of these jobs, in the same order, until their texts take all of `room`.
    private func jobs(_ ids: [JobID], on connection: Connection, _ room: inout Int) throws(StoreError) -> [StoredJob] {
        var jobs: [StoredJob] = []
        for start in stride(from: 0, to: ids.count, by: Self.step) where room > 0 {
            let part = Array(ids[start..<min(ids.count, start + Self.step)])
            let (isAmong, parameter) = Self.isAmong(part)
            let select = "\(Self.selectJobs) WHERE id \(isAmong) AND \(Self.isVisible)"
            func legible(_ row: Row) -> (StoredJob, size: Int)? {
                damage.legible("Job \(JobColumns.id(row))", try StoredJob(row)).map { ($0, JobColumns.size(row)) }
            }
            let found = try connection.rows(select, [parameter], atMost: part.count, legible)
            for id in part where room > 0 {
                guard let (job, size) = found.first(where: { job, _ in job.row.id == id }) else { continue }
                jobs.append(job)
                room -= size
            }
        }
        return jobs
    }

    /// Passes the jobs that a filter selects to `body`, some in each snapshot, as long as it returns how many more it wants.
    private func forEach(
        _ filter: JobFilter, _ body: (Connection, [JobID]) throws(StoreError) -> Int
    ) throws(StoreError) {
        var (filter, wanted) = (filter, filter.limit)
        while wanted > 0 {
            filter.after = try read { connection throws(StoreError) -> JobID? in
                if let parent = filter.parent {
                    let select = "SELECT 1 FROM jobs WHERE id = ?1 AND \(Self.isVisible)"
                    guard try !connection.rows(select, [parent], atMost: 1, { _ in true }).isEmpty else { return nil }
                }
                let (ids, end) = try Self.ids(filter, atMost: wanted, on: connection)
                wanted = try body(connection, ids)
                return end
            }
            if filter.after == nil { return }
        }
    }

    package func standings(of ids: [JobID]) throws(StoreError) -> [JobID: JobStanding] {
        let (isAmong, parameter) = Self.isAmong(ids)
        let select = "SELECT id, owner, state, version FROM jobs WHERE id \(isAmong) AND \(Self.isVisible)"
        let found = try rows(
            select, [parameter], atMost: ids.count, named: { "Job \($0.integer(0))" }
        ) { row throws(DamagedRow) in
            let standing = JobStanding(owner: try row.owner(1), state: try row.state(2), version: row.integer(3))
            return (row.integer(0), standing)
        }
        return Dictionary(found) { $1 }
    }

    package func outcomes(
        of job: JobID, list: Int64, from index: Int, limit: Int
    ) throws(StoreError) -> [ChildOutcome] {
        let select = """
            SELECT id, parent_index, state, carried FROM jobs \
            WHERE parent = ?1 AND list = ?2 AND parent_index >= ?3 ORDER BY parent_index
            """
        return try rows(select, [job, list, index], atMost: limit, named: { "Job \($0.integer(0))" }) {
            row throws(DamagedRow) in
            let (job, index) = (row.integer(0), Int(row.integer(1)))
            return (job: job, index: index, state: try row.state(2), carried: try row.carried(3))
        }
    }

    package func schedule(_ key: ScheduleKey) throws(StoreError) -> StoredSchedule? {
        try schedules("owner = ?1 AND name = ?2", [key.owner, key.name], longestSpec: .max).first
    }

    package func schedules(
        after key: ScheduleKey?, owner: UInt32?, limit: Int
    ) throws(StoreError) -> [StoredSchedule] {
        try schedules(after: key, owner: owner, atMost: limit, longestSpec: StoredSchedule.longestShownSpec)
    }

    package func checkpoint(of job: JobID, link: Int) throws(StoreError) -> [UInt8]? {
        let select = "SELECT text FROM checkpoints WHERE job = ?1 AND link = ?2"
        return try rows(select, [job, link], atMost: 1) { $0.bytes(0) }.first
    }

    /// Leaves out damaged checkpoints, with which no transfer can continue.
    package func unfinishedTransfers(limit: Int) throws(StoreError) -> [UnfinishedTransfer] {
        // The sum keeps SQLite from beginning with the jobs.
        let select = """
            SELECT checkpoints.job, jobs.owner, checkpoints.link, checkpoints.text FROM checkpoints \
            JOIN jobs ON jobs.id = checkpoints.job + 0 \
            WHERE state < 4 AND jobs.link = checkpoints.link AND \(Self.isVisible) ORDER BY checkpoints.job
            """
        return try rows(select, [], atMost: limit) { row in
            let checkpoint = row.withBytes(3) { try? JSONParser.parse($0).value }
            guard let owner = try? row.owner(1), let checkpoint else { return nil }
            return UnfinishedTransfer(
                job: row.integer(0), owner: owner, link: Int(row.integer(2)), checkpoint: checkpoint)
        }
    }

    package func download(to path: String) throws(StoreError) -> [UInt8]? {
        let select = "SELECT record FROM downloads WHERE path = ?1"
        return try rows(select, [path], atMost: 1) { $0.bytes(0) }.first
    }

    package func blobs(
        beforeLife life: Int64, after blob: BlobReference?, limit: Int
    ) throws(StoreError) -> [BlobReference] {
        let select = """
            SELECT DISTINCT life, number, size FROM blobs WHERE life < ?1 AND (life, number) > (?2, ?3) \
            ORDER BY life, number
            """
        return try rows(
            select, [life, blob?.life ?? 0, blob?.number ?? 0], atMost: limit, BlobReference.init)
    }
}
