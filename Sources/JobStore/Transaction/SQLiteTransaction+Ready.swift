import JobModel

extension SQLiteTransaction {
    /// Jobs for excluded hosts that are passed over before the search goes on by host.
    private static let mostPassedOver = 4_000
    private static let isReady = "state = 1 AND waiting = 0 AND removing = 0 AND queue = ?1 AND owner = ?2"
    private static let inOrder = selectReady(from: "jobs_ready")
    private static let ofHost = selectReady(from: "jobs_ready_by_host", "AND host IS ?5")
    private static let nextHost = """
        SELECT host FROM jobs INDEXED BY jobs_ready_by_host WHERE \(isReady) AND host > ?3 ORDER BY host LIMIT 1
        """

    /// Behind a position are the jobs of its priority with higher ids, then all of lower priorities: each is one range of
    /// the index.
    private static func selectReady(from index: String, _ condition: String = "") -> String {
        let select = """
            SELECT priority, id, host FROM jobs INDEXED BY \(index) WHERE \(isReady) \(condition) AND priority
            """
        return "\(select) = ?3 AND id > ?4 UNION ALL \(select) < ?3 ORDER BY priority DESC, id"
    }

    /// Where many jobs for excluded hosts come first, perhaps a million, the search goes on host by host, and reads none of
    /// them.
    func ready(
        queue: String, owner: UInt32, after position: ReadyPosition?, excluding hosts: Set<String>, limit: Int
    ) throws(StoreError) -> [ReadyRow] {
        try flushJobs()
        let start: [(any Bindable)?] = [
            queue, owner, position.map { Int64($0.priority) } ?? .max, position?.id ?? .max,
        ]
        var found: [ReadyRow] = []
        var passedOver = 0
        try forEach(Self.inOrder, start) { row in
            if hosts.contains(row.host ?? "") { passedOver += 1 } else { found.append(row) }
            return found.count < limit && passedOver <= Self.mostPassedOver
        }
        if passedOver <= Self.mostPassedOver { return found }
        found = []
        var host: String?
        repeat {
            if host.map({ !hosts.contains($0) }) ?? true {
                // Jobs behind it are not among the first.
                let last = found.count == limit ? found.last?.position : nil
                var count = 0
                try forEach(Self.ofHost, start + [host]) { row in
                    if let last, last < row.position { return false }
                    found.append(row)
                    count += 1
                    return count < limit
                }
                found = Array(found.sorted { $0.position < $1.position }.prefix(limit))
            }
            host = try rows(Self.nextHost, [queue, owner, host ?? ""], atMost: 1) { $0.text(0) }.first
        } while host != nil
        return found
    }

    /// Calls `body` with the jobs that a statement selects until it returns false.
    private func forEach(
        _ sql: String, _ values: [(any Bindable)?], _ body: (ReadyRow) -> Bool
    ) throws(StoreError) {
        let select = try connection.statement(sql, values)
        defer { select.reset() }
        while try select.step() {
            let position = ReadyPosition(priority: Int(select.integer(0)), id: select.integer(1))
            if damage.isKnown("Job \(position.id)") { continue }
            if !body(ReadyRow(position: position, host: select.text(2))) { return }
        }
    }
}
