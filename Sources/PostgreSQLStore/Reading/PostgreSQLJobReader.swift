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

    package func read<Value>(
        _ body: (PostgreSQLConnection) throws(StoreError) -> Value
    ) throws(StoreError) -> Value {
        try pool.run { connection throws(StoreError) in
            try connection.begin(isSnapshot: true)
            let value = try body(connection)
            try connection.commit()
            return value
        }
    }

    package static let document = "(SELECT documents.text FROM documents WHERE documents.job = jobs.id)"
    package static let step = 16

    package static func isAmong(_ ids: [JobID]) -> (condition: String, ids: any Bindable) {
        ("= ANY (?1)", PostgreSQLParameter.array(ids))
    }

    // MARK: Nodes

    /// Compares times by the server's clock alone.
    package func nodes() throws(StoreError) -> [NodeRow] {
        try read { connection throws(StoreError) in
            try connection.rows(
                """
                SELECT node, version, programs, configuration, (extract(epoch FROM started) * 1000)::bigint, \
                (extract(epoch FROM seen) * 1000)::bigint, is_clean, \
                is_over OR now() - seen > $1::bigint * interval '1 millisecond', \
                CASE WHEN is_clean OR is_over THEN 0 ELSE (SELECT count(*) FROM jobs WHERE run_life = latest.life) END \
                FROM (SELECT DISTINCT ON (node) * FROM deferd_lives WHERE seen > now() - interval '1 day' \
                ORDER BY node, life DESC) AS latest ORDER BY node LIMIT $2
                """, [Int64(settings.lease * 1000), NodeRow.most]
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
