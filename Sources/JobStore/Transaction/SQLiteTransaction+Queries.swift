import JobModel

extension SQLiteTransaction {
    func due(steady: SteadyTime, wall: Timestamp, limit: Int) throws(StoreError) -> [JobRow] {
        var found: [JobID: JobRow] = [:]
        for (column, index, state, time) in [
            ("due", "jobs_due", "state < 4", steady), ("deadline", "jobs_by_deadline", "state < 4", steady),
            ("not_before", "jobs_due_by_wall", "state = 0 AND due IS NULL", wall.milliseconds),
        ] {
            let condition = "\(state) AND removing = 0 AND \(column) <= ?1 ORDER BY \(column)"
            for row in try jobs(by: index, condition, [time], atMost: limit) { found[row.id] = row }
        }
        return Array(found.values.sorted { $0.id < $1.id }.prefix(limit))
    }

    func dueTimes(after steady: SteadyTime, _ wall: Timestamp) throws(StoreError) -> DueTimes {
        try flushJobs()
        let select = """
            SELECT (SELECT min(due) FROM jobs WHERE state < 4 AND due > ?1 AND removing = 0), \
            (SELECT min(deadline) FROM jobs WHERE state < 4 AND deadline > ?1 AND removing = 0), \
            (SELECT min(not_before) FROM jobs \
            WHERE state = 0 AND due IS NULL AND not_before > ?2 AND removing = 0), \
            (SELECT min(next) FROM schedules WHERE next > ?2)
            """
        let found = try rows(select, [steady, wall.milliseconds], atMost: 1) { row in
            DueTimes(
                steady: [row.optionalInteger(0), row.optionalInteger(1)].compactMap(\.self).min(),
                wall: row.time(2), schedules: row.time(3))
        }
        var times = found.first ?? DueTimes()
        for owner in try finishedOwners() {
            let select = "SELECT min(finished_at) FROM \(jobs("jobs_finished")) WHERE \(Self.isFinished) AND owner = ?1"
            let end = try rows(select, [owner], atMost: 1) { $0.time(0) }.first
            times.firstEnd = [times.firstEnd, end].compactMap(\.self).min()
        }
        return times
    }

    func lostRuns(limit: Int) throws(StoreError) -> [JobRow] {
        try jobs(
            by: "jobs_by_life", "run_life IS NOT NULL AND (run_life < ?1 OR run_life > ?1) ORDER BY id", [life],
            atMost: limit)
    }

    func finished(owner: UInt32?, before: Timestamp, limit: Int) throws(StoreError) -> [JobRow] {
        try flushJobs()
        let condition = "\(Self.isFinished) AND owner = ?1 AND finished_at < ?2 ORDER BY finished_at, id"
        var found: [JobRow] = []
        let owners = if let owner { [Int64(owner)] } else { try finishedOwners() }
        for owner in owners {
            found += try jobs(by: "jobs_finished", condition, [owner, before], atMost: limit)
        }
        return Array(found.sorted { ($0.finishedAt ?? before, $0.id) < ($1.finishedAt ?? before, $1.id) }.prefix(limit))
    }

    /// The owners of finished root jobs, in order.
    private func finishedOwners() throws(StoreError) -> [Int64] {
        try connection.distinct("SELECT min(owner) FROM jobs WHERE \(Self.isFinished) AND owner > ?1")
    }

    static let selectCounts = "SELECT owner, queue, state, jobs, bytes FROM counts WHERE jobs > 0"

    func put(_ counts: [CountKey: CountValue]) throws(StoreError) {
        for (key, value) in counts {
            try write(
                "INSERT OR REPLACE INTO counts (owner, queue, state, jobs, bytes) VALUES (?1, ?2, ?3, ?4, ?5)",
                [key.owner, key.queue, key.state.code, value.jobs, value.bytes])
        }
    }

    // MARK: Ready jobs

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
        try connection.forEach(sql, values) { row in
            let position = ReadyPosition(priority: Int(row.integer(0)), id: row.integer(1))
            return damage.isKnown("Job \(position.id)") || body(ReadyRow(position: position, host: row.text(2)))
        }
    }
}
