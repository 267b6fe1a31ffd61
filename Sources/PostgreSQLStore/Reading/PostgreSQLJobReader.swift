package import JobModel
import JobStore

/// Reads for clients and runs, each call in one snapshot on one of a few connections.
package final class PostgreSQLJobReader: JobReader {
    let damage: DamageReport
    private let settings: PostgreSQLSettings
    let pool: PostgreSQLPool

    init(_ settings: PostgreSQLSettings, _ damage: DamageReport) {
        (self.settings, self.damage) = (settings, damage)
        pool = PostgreSQLPool(settings, count: 3, errors: .read)
    }

    /// Later reads fail.
    func close() { pool.close() }

    /// Runs `body` in one snapshot, on a connection that no other thread uses.
    func read<Value>(
        _ body: (inout PostgreSQLSnapshot) throws(StoreError) -> Value
    ) throws(StoreError) -> Value {
        try pool.run { connection throws(StoreError) in
            var snapshot = PostgreSQLSnapshot(connection, damage)
            try connection.begin(isSnapshot: true)
            let value = try body(&snapshot)
            try connection.commit()
            return value
        }
    }

    // MARK: Jobs

    package func job(_ id: JobID) throws(StoreError) -> StoredJob? { try jobs([id]).first }

    package func jobs(_ ids: [JobID]) throws(StoreError) -> [StoredJob] {
        try read { snapshot throws(StoreError) in
            var page = SnapshotPage(limit: ids.count)
            try snapshot.add(ids, to: &page)
            return page.jobs
        }
    }

    package func standings(of ids: [JobID]) throws(StoreError) -> [JobID: JobStanding] {
        try read { snapshot throws(StoreError) in try snapshot.standings(of: ids) }
    }

    package func page(_ filter: JobFilter) throws(StoreError) -> (jobs: [StoredJob], endsEarly: Bool) {
        try read { snapshot throws(StoreError) in
            var page = SnapshotPage(limit: filter.limit)
            try snapshot.add(try snapshot.ids(filter), to: &page)
            return (page.jobs, page.isFull)
        }
    }

    package func ids(_ filter: JobFilter) throws(StoreError) -> [JobID] {
        try read { snapshot throws(StoreError) in try snapshot.ids(filter) }
    }

    package func outcomes(
        of job: JobID, list: Int64, from index: Int, limit: Int
    ) throws(StoreError) -> [ChildOutcome] {
        try read { snapshot throws(StoreError) in
            try snapshot.rows(
                """
                SELECT id, parent_index, state, carried FROM jobs \
                WHERE parent = $1 AND list = $2 AND parent_index >= $3 ORDER BY parent_index LIMIT $4
                """, job, list, index, limit
            ).map { row in
                damage.legible(.job(row.integer(0))) { () throws(DamagedRow) in
                    ChildOutcome(
                        job: row.integer(0), index: Int(row.integer(1)), state: try row.state(2),
                        carried: try row.carried(3))
                }
            }
        }
    }

    // MARK: Schedules

    package func schedule(_ key: ScheduleKey) throws(StoreError) -> StoredScheduleRow? {
        try schedules(
            "owner = $1 AND name = $2", [key.owner, Array(key.name.utf8)], longestSpec: .max
        ).first
    }

    package func schedules(
        after key: ScheduleKey?, owner: UInt32?, limit: Int
    ) throws(StoreError) -> [StoredScheduleRow] {
        let condition = "(owner, name) > ($1, $2)\(owner == nil ? "" : " AND owner = $4") ORDER BY owner, name LIMIT $3"
        let values: [(any Bindable)?] = [key?.owner ?? owner ?? 0, Array((key?.name ?? "").utf8), limit]
        return try schedules(
            condition, values + (owner.map { [$0] } ?? []), longestSpec: StoredScheduleRow.longestShownSpec)
    }

    /// The schedules that fit a condition except damaged ones, without specs longer than `longestSpec`.
    private func schedules(
        _ condition: String, _ values: [(any Bindable)?], longestSpec: Int
    ) throws(StoreError) -> [StoredScheduleRow] {
        try read { snapshot throws(StoreError) in
            try snapshot.query("\(ScheduleColumns.selectWhole) WHERE \(condition)", values).map { row in
                damage.legible(.other(ScheduleColumns.name(row))) { () throws(DamagedRow) in
                    try ScheduleColumns.whole(row, longestSpec: longestSpec)
                }
            }
        }
    }

    // MARK: Transfers and files

    package func checkpoint(of job: JobID, link: Int) throws(StoreError) -> [UInt8]? {
        try read { snapshot throws(StoreError) in
            try snapshot.rows("SELECT text FROM checkpoints WHERE job = $1 AND link = $2", job, link).first?.bytes(0)
        }
    }

    package func download(to path: String) throws(StoreError) -> [UInt8]? {
        try read { snapshot throws(StoreError) in
            try snapshot.rows("SELECT record FROM downloads WHERE path = $1", Array(path.utf8)).first?.bytes(0)
        }
    }

    /// Leaves out damaged checkpoints, with which no transfer can continue.
    package func unfinishedTransfers(of job: JobID?, limit: Int) throws(StoreError) -> [UnfinishedTransfer] {
        try read { snapshot throws(StoreError) in
            let found = try snapshot.rows(
                """
                SELECT checkpoints.job, jobs.owner, checkpoints.link, text, jobs.parent FROM checkpoints \
                JOIN jobs ON jobs.id = checkpoints.job WHERE ($1::bigint IS NULL OR checkpoints.job = $1) AND \
                state < 4 AND removing = 0 AND jobs.link = checkpoints.link ORDER BY checkpoints.job LIMIT $2
                """, job, limit)
            try snapshot.learn(Set((0..<found.count).compactMap { found[$0].optionalInteger(4) }))
            return try found.map { row -> UnfinishedTransfer? in
                if let parent = row.optionalInteger(4), snapshot.isHidden(parent) { return nil }
                let checkpoint = row.withBytes(3) { try? JSONParser.parse($0).value }
                guard let owner = UInt32(exactly: row.integer(1)), let checkpoint else { return nil }
                return UnfinishedTransfer(
                    job: row.integer(0), owner: owner, link: Int(row.integer(2)), checkpoint: checkpoint)
            }
        }
    }

    package func blobs(
        beforeLife life: Int64, after blob: BlobReference?, limit: Int
    ) throws(StoreError) -> [BlobReference] {
        try read { snapshot throws(StoreError) in
            try snapshot.rows(
                """
                SELECT DISTINCT life, number, size FROM blobs WHERE life < $1 AND (life, number) > ($2, $3) \
                ORDER BY life, number LIMIT $4
                """, life, blob?.life ?? 0, blob?.number ?? 0, limit
            ).map { row in BlobReference(row) }
        }
    }

    // MARK: Nodes

    /// Compares times by the server's clock alone.
    package func nodes() throws(StoreError) -> [NodeRow] {
        try read { snapshot throws(StoreError) in
            try snapshot.rows(
                """
                SELECT node, version, programs, configuration, (extract(epoch FROM started) * 1000)::bigint, \
                (extract(epoch FROM seen) * 1000)::bigint, is_clean, \
                is_over OR now() - seen > $1::bigint * interval '1 millisecond', \
                CASE WHEN is_clean OR is_over THEN 0 ELSE (SELECT count(*) FROM jobs WHERE run_life = latest.life) END \
                FROM (SELECT DISTINCT ON (node) * FROM deferd_lives WHERE seen > now() - interval '1 day' \
                ORDER BY node, life DESC) AS latest ORDER BY node LIMIT $2
                """, Int64(settings.lease * 1000), NodeRow.most
            ).map { row -> NodeRow? in
                guard let name = row.text(0), let started = row.time(4), let seen = row.time(5) else { return nil }
                let programs = row.withBytes(2) { try? JSONParser.parse($0).value.array }
                let node = NodeDescription(
                    name: name, version: row.text(1) ?? "", programs: programs?.compactMap(\.string) ?? [],
                    configuration: row.text(3) ?? "")
                let state: NodeRow.State = row.integer(6) != 0 ? .stopped : row.integer(7) != 0 ? .away : .running
                return NodeRow(node, startedAt: started, seen: seen, state: state, running: Int(row.integer(8)))
            }
        }
    }

    package func copyState() throws(StoreError) -> String {
        throw StoreError(.read, "The jobs are in PostgreSQL; make backups of that database with pg_dump.")
    }
}
