package import JobModel

/// Reads for clients and runs, each call in one snapshot on one of a few connections.
package final class SQLiteJobReader: JobReader {
    let pool: ReadingPool
    let directory: StateDirectory
    private let damage: DamageReport

    init(_ pool: ReadingPool, _ damage: DamageReport, _ directory: StateDirectory) {
        self.pool = pool
        self.damage = damage
        self.directory = directory
    }

    private func read<Value>(_ body: (inout Snapshot) throws(StoreError) -> Value) throws(StoreError) -> Value {
        do throws(StoreError) {
            return try pool.read { connection throws(StoreError) in
                var snapshot = Snapshot(connection, damage)
                return try body(&snapshot)
            }
        } catch {
            if error.code == .damaged { damage.tell(error) }
            throw error
        }
    }

    // MARK: Jobs

    package func job(_ id: JobID) throws(StoreError) -> StoredJob? {
        try read { snapshot throws(StoreError) in try snapshot.job(id) }
    }

    package func jobs(_ ids: [JobID]) throws(StoreError) -> [StoredJob] {
        try read { snapshot throws(StoreError) in
            var page = SnapshotPage(limit: ids.count)
            try snapshot.add(ids, to: &page)
            return page.jobs
        }
    }

    package func standings(of ids: [JobID]) throws(StoreError) -> [JobID: JobStanding] {
        try read { snapshot throws(StoreError) in
            var standings: [JobID: JobStanding] = [:]
            for id in ids { standings[id] = try snapshot.standing(of: id) }
            return standings
        }
    }

    package func page(_ filter: JobFilter) throws(StoreError) -> (jobs: [StoredJob], endsEarly: Bool) {
        var page = SnapshotPage(limit: filter.limit)
        var filter = filter
        // Each snapshot tests a bounded number of jobs, however few of them fit.
        while page.mayGrow {
            let end = try read { snapshot throws(StoreError) in try snapshot.fill(&page, filter) }
            guard let end else { break }
            filter.after = end
        }
        return (page.jobs, page.isFull)
    }

    package func outcomes(
        of job: JobID, list: Int64, from index: Int, limit: Int
    ) throws(StoreError) -> [ChildOutcome] {
        try read { snapshot throws(StoreError) in
            try snapshot.outcomes(of: job, list: list, from: index, limit: limit)
        }
    }

    // MARK: Schedules

    package func schedule(_ key: ScheduleKey) throws(StoreError) -> StoredScheduleRow? {
        try read { snapshot throws(StoreError) in
            let select = try snapshot.connection.statement(
                "\(ScheduleColumns.selectWhole) WHERE owner = ?1 AND name = ?2", key.owner, key.name)
            return try snapshot.schedules(select, atMost: 1, longestSpec: .max).first
        }
    }

    package func schedules(
        after key: ScheduleKey?, owner: UInt32?, limit: Int
    ) throws(StoreError) -> [StoredScheduleRow] {
        try read { snapshot throws(StoreError) in
            let select = try snapshot.connection.statement(
                """
                \(ScheduleColumns.selectWhole) \
                WHERE (owner, name) > (?1, ?2)\(owner == nil ? "" : " AND owner = ?3") ORDER BY owner, name
                """, [key?.owner ?? owner ?? 0, key?.name ?? ""] + (owner.map { [$0] } ?? []))
            return try snapshot.schedules(select, atMost: limit, longestSpec: StoredScheduleRow.longestShownSpec)
        }
    }

    // MARK: Transfers and files

    package func checkpoint(of job: JobID, link: Int) throws(StoreError) -> [UInt8]? {
        try bytes("SELECT text FROM checkpoints WHERE job = ?1 AND link = ?2", job, link)
    }

    package func unfinishedTransfers(of job: JobID?, limit: Int) throws(StoreError) -> [UnfinishedTransfer] {
        try read { snapshot throws(StoreError) in try snapshot.unfinishedTransfers(of: job, limit: limit) }
    }

    package func download(to path: String) throws(StoreError) -> [UInt8]? {
        try bytes("SELECT record FROM downloads WHERE path = ?1", path)
    }

    private func bytes(_ sql: String, _ values: (any Bindable)?...) throws(StoreError) -> [UInt8]? {
        try read { snapshot throws(StoreError) in try snapshot.connection.statement(sql, values).bytes() }
    }

    package func blobs(
        beforeLife life: Int64, after blob: BlobReference?, limit: Int
    ) throws(StoreError) -> [BlobReference] {
        try read { snapshot throws(StoreError) in
            let select = try snapshot.connection.statement(
                """
                SELECT DISTINCT life, number, size FROM blobs WHERE life < ?1 AND (life, number) > (?2, ?3) \
                ORDER BY life, number
                """, life, blob?.life ?? 0, blob?.number ?? 0)
            return try select.rows(atMost: limit) { row throws(StoreError) in
                BlobReference(life: row.integer(0), number: row.integer(1), size: row.integer(2))
            }
        }
    }
}

/// Jobs that are in memory together, within a bound.
struct SnapshotPage {
    private static let largest: Int64 = 2 << 20

    private(set) var jobs: [StoredJob] = []
    private var bytes: Int64 = 0
    private let limit: Int

    init(limit: Int) { self.limit = limit }

    var isFull: Bool { bytes >= Self.largest }
    var left: Int { limit - jobs.count }
    var mayGrow: Bool { left > 0 && !isFull }

    mutating func append(_ job: StoredJob) {
        jobs.append(job)
        bytes += job.textSize
    }
}

extension StoredJob {
    /// Bytes of its texts except those in files.
    fileprivate var textSize: Int64 {
        func size(_ value: StoredValue?) -> Int64 { if case .inline(let text) = value { Int64(text.count) } else { 0 } }
        func size(_ carried: Carried?) -> Int64 { carried?.blob == nil ? carried?.size ?? 0 : 0 }
        var bytes = size(template) + size(row.carried) + size(row.failedLink?.incoming)
        switch document {
        case .spec(let text): bytes += Int64(text.count)
        case .item(let item): bytes += size(item)
        }
        for outcome in row.outcomes { bytes += outcome.size }
        return bytes
    }
}
