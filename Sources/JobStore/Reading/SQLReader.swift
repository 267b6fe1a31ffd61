package import JobModel

/// The reads that are the same in both databases, each in one snapshot.
package protocol SQLReader: JobReader, SQLRows {}

extension SQLReader {
    package func outcomes(
        of job: JobID, list: Int64, from index: Int, limit: Int
    ) throws(StoreError) -> [ChildOutcome] {
        let select = """
            SELECT id, parent_index, state, carried FROM jobs \
            WHERE parent = ?1 AND list = ?2 AND parent_index >= ?3 ORDER BY parent_index
            """
        return try rows(select, [job, list, index], atMost: limit) { row throws(StoreError) in
            damage.legible(
                "Job \(row.integer(0))",
                (
                    job: row.integer(0), index: Int(row.integer(1)), state: try row.state(2),
                    carried: try row.carried(3)
                ))
        }
    }

    package func schedule(_ key: ScheduleKey) throws(StoreError) -> StoredScheduleRow? {
        try schedules("owner = ?1 AND name = ?2", [key.owner, name(key.name)], atMost: 1, longestSpec: .max).first
    }

    package func schedules(
        after key: ScheduleKey?, owner: UInt32?, limit: Int
    ) throws(StoreError) -> [StoredScheduleRow] {
        let condition = "(owner, name) > (?1, ?2)\(owner == nil ? "" : " AND owner = ?3") ORDER BY owner, name"
        let start: [(any Bindable)?] = [key?.owner ?? owner ?? 0, name(key?.name ?? "")]
        return try schedules(
            condition, start + (owner.map { [$0] } ?? []), atMost: limit,
            longestSpec: StoredScheduleRow.longestShownSpec)
    }

    /// The schedules that fit a condition except damaged ones, without specs longer than `longestSpec`.
    private func schedules(
        _ condition: String, _ values: [(any Bindable)?], atMost limit: Int, longestSpec: Int
    ) throws(StoreError) -> [StoredScheduleRow] {
        let select = "\(ScheduleColumns.selectWhole) WHERE \(condition)"
        return try rows(select, values, atMost: limit) { row throws(StoreError) in
            damage.legible(ScheduleColumns.name(row), try ScheduleColumns.whole(row, longestSpec: longestSpec))
        }
    }

    package func checkpoint(of job: JobID, link: Int) throws(StoreError) -> [UInt8]? {
        let select = "SELECT text FROM checkpoints WHERE job = ?1 AND link = ?2"
        return try rows(select, [job, link], atMost: 1) { row throws(StoreError) in row.bytes(0) }.first
    }

    package func download(to path: String) throws(StoreError) -> [UInt8]? {
        let select = "SELECT record FROM downloads WHERE path = ?1"
        return try rows(select, [name(path)], atMost: 1) { row throws(StoreError) in row.bytes(0) }.first
    }

    package func blobs(
        beforeLife life: Int64, after blob: BlobReference?, limit: Int
    ) throws(StoreError) -> [BlobReference] {
        let select = """
            SELECT DISTINCT life, number, size FROM blobs WHERE life < ?1 AND (life, number) > (?2, ?3) \
            ORDER BY life, number
            """
        return try rows(select, [life, blob?.life ?? 0, blob?.number ?? 0], atMost: limit) { row throws(StoreError) in
            BlobReference(row)
        }
    }
}

/// Jobs that are in memory together, within a bound.
package struct SnapshotPage {
    private static let largest = 2 << 20

    package private(set) var jobs: [StoredJob] = []
    private var size = 0
    private let limit: Int

    package init(limit: Int) { self.limit = limit }

    package var isFull: Bool { size >= Self.largest }
    package var left: Int { limit - jobs.count }
    package var mayGrow: Bool { left > 0 && !isFull }

    package mutating func append(_ job: StoredJob, size: Int) {
        jobs.append(job)
        self.size += size
    }
}
