package import JobModel
package import JobStore

/// Reads for clients and runs, each call in one snapshot on one of a few connections.
package final class PostgreSQLJobReader: SQLReader {
    package let damage: DamageReport
    private let settings: PostgreSQLSettings
    let pool: PostgreSQLPool

    init(_ settings: PostgreSQLSettings, _ damage: DamageReport) {
        (self.settings, self.damage) = (settings, damage)
        pool = PostgreSQLPool(settings, count: 3, errors: .read)
    }

    /// Later reads fail.
    func close() { pool.close() }

    /// Runs `body` in one snapshot, on a connection that no other thread uses.
    func read<Value>(_ body: (inout PostgreSQLSnapshot) throws(StoreError) -> Value) throws(StoreError) -> Value {
        try pool.run { connection throws(StoreError) in
            var snapshot = PostgreSQLSnapshot(connection, damage)
            try connection.begin(isSnapshot: true)
            let value = try body(&snapshot)
            try connection.commit()
            return value
        }
    }

    package func rows<Value>(
        _ sql: String, _ values: [(any Bindable)?], atMost limit: Int,
        _ read: (PostgreSQLRow) throws(StoreError) -> Value?
    ) throws(StoreError) -> [Value] {
        try self.read { snapshot throws(StoreError) in
            try snapshot.query("\(sql) LIMIT ?\(values.count + 1)", values + [limit]).map(read)
        }
    }

    package func name(_ text: String) -> any Bindable { Array(text.utf8) }

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

    /// Leaves out damaged checkpoints, with which no transfer can continue.
    package func unfinishedTransfers(limit: Int) throws(StoreError) -> [UnfinishedTransfer] {
        try read { snapshot throws(StoreError) in
            let found = try snapshot.rows(
                """
                SELECT checkpoints.job, jobs.owner, checkpoints.link, text, jobs.parent FROM checkpoints \
                JOIN jobs ON jobs.id = checkpoints.job \
                WHERE state < 4 AND removing = 0 AND jobs.link = checkpoints.link ORDER BY checkpoints.job LIMIT $1
                """, limit)
            try snapshot.learn(Set((0..<found.count).compactMap { found[$0].optionalInteger(4) }))
            return try found.map { row -> UnfinishedTransfer? in
                if let parent = row.optionalInteger(4), snapshot.isHidden(parent) { return nil }
                return UnfinishedTransfer(row)
            }
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
