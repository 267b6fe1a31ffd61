import JobModel

/// Finds the ready jobs of an owner in a queue in starting order, except those for excluded hosts.
///
/// Where many jobs for excluded hosts come first, perhaps a million, the search goes on host by host, and reads none of
/// them.
struct ReadySearch {
    /// Jobs for excluded hosts that are passed over before the search goes on by host.
    private static let mostPassedOver = 4_000
    private static let isReady = "state = 1 AND waiting = 0 AND removing = 0 AND queue = ?1 AND owner = ?2"
    private static let inOrder = select(from: "jobs_ready")
    private static let ofHost = select(from: "jobs_ready_by_host", "AND host IS ?5")
    private static let nextHost = """
        SELECT host FROM jobs INDEXED BY jobs_ready_by_host WHERE \(isReady) AND host > ?3 ORDER BY host LIMIT 1
        """

    let connection: SQLiteConnection
    let damage: DamageReport
    let queue: String
    let owner: UInt32
    let position: ReadyPosition?
    let excluded: Set<String>
    let limit: Int

    /// Behind a position are the jobs of its priority with higher ids, then all of lower priorities: each is one range of
    /// the index.
    private static func select(from index: String, _ condition: String = "") -> String {
        let select = """
            SELECT priority, id, host FROM jobs INDEXED BY \(index) WHERE \(isReady) \(condition) AND priority
            """
        return "\(select) = ?3 AND id > ?4 UNION ALL \(select) < ?3 ORDER BY priority DESC, id"
    }

    func rows() throws(StoreError) -> [ReadyRow] {
        var found: [ReadyRow] = []
        var passedOver = 0
        try forEach(Self.inOrder, nil) { row in
            if excluded.contains(row.host ?? "") {
                passedOver += 1
            } else {
                found.append(row)
            }
            return found.count < limit && passedOver <= Self.mostPassedOver
        }
        return passedOver > Self.mostPassedOver ? try rowsByHost() : found
    }

    private func rowsByHost() throws(StoreError) -> [ReadyRow] {
        var first: [ReadyRow] = []
        // Jobs behind it are not among the first.
        var last: ReadyPosition?
        var host: String?
        repeat {
            if host.map({ !excluded.contains($0) }) ?? true {
                var count = 0
                try forEach(Self.ofHost, host) { row in
                    if let last, last < row.position { return false }
                    first.append(row)
                    count += 1
                    return count < limit
                }
                if first.count >= limit {
                    first = Array(first.sorted { $0.position < $1.position }.prefix(limit))
                    last = first.last?.position
                }
            }
            host = try connection.statement(Self.nextHost, queue, owner, host ?? "").row { row throws(StoreError) in
                row.text(0)
            }
        } while host != nil
        return first.sorted { $0.position < $1.position }
    }

    /// Calls `body` with the jobs that a statement selects until it returns false.
    private func forEach(_ sql: String, _ host: String?, _ body: (ReadyRow) -> Bool) throws(StoreError) {
        let select = try connection.statement(
            sql, queue, owner, position.map { Int64($0.priority) } ?? .max, position?.id ?? .max, host)
        defer { select.reset() }
        while try select.step() {
            let row = ReadyRow(
                position: ReadyPosition(priority: Int(select.integer(0)), id: select.integer(1)), host: select.text(2))
            if !damage.isKnown("Job \(row.position.id)"), !body(row) { return }
        }
    }
}
