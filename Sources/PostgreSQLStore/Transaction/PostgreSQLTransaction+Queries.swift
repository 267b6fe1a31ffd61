import JobModel
import JobStore

extension PostgreSQLTransaction {
    func ready(
        queue: String, owner: UInt32, after position: ReadyPosition?, excluding hosts: Set<String>, limit: Int
    ) throws(StoreError) -> [ReadyRow] {
        try flushJobs()
        let start = position ?? starts.before(queue: queue, owner: owner)
        let excluded = PostgreSQLColumn(.text)
        for host in hosts.sorted() { excluded.append(host.utf8) }
        let values: [(any Bindable)?] = [
            queue, owner, start.map { Int64($0.priority) } ?? .max, start?.id ?? .max, limit, excluded.parameter, node,
        ]
        // Behind a position are the jobs of its priority with higher ids, then all of lower priorities, of any node and of
        // this one: each is one range of the index.
        let select = """
            SELECT priority, id, host FROM jobs WHERE state = 1 AND waiting = 0 AND removing = 0 AND queue = $1 \
            AND owner = $2 AND (host IS NULL OR host <> ALL ($6))
            """
        let order = "ORDER BY priority DESC, id LIMIT $5"
        let ranges = ["''", "$7"].flatMap { node in
            ["priority = $3 AND id > $4", "priority < $3"].map { "(\(select) AND node = \(node) AND \($0) \(order))" }
        }
        let found = try query("\(ranges.joined(separator: " UNION ALL ")) \(order)", values).map { row -> ReadyRow? in
            let found = ReadyRow(
                position: ReadyPosition(priority: Int(row.integer(0)), id: row.integer(1)), host: row.text(2))
            return damage.isKnown("Job \(found.position.id)") ? nil : found
        }
        if position == nil, hosts.isEmpty { starts.found(found.first?.position, queue: queue, owner: owner) }
        return found
    }

    func due(steady: SteadyTime, wall: Timestamp, limit: Int) throws(StoreError) -> [JobRow] {
        // It lowers the start.
        try flushJobs()
        let (rest, end) = ("removing = 0", "LIMIT $3")
        return try jobs(
            by: "jobs_due",
            """
            id = ANY (ARRAY(\
            (SELECT id FROM jobs WHERE state < 4 AND \(rest) AND due BETWEEN $4 AND $1 ORDER BY due \(end)) UNION \
            (SELECT id FROM jobs WHERE state < 4 AND \(rest) AND deadline BETWEEN $4 AND $1 \
            ORDER BY deadline \(end)) UNION \
            (SELECT id FROM jobs WHERE state = 0 AND due IS NULL AND \(rest) AND not_before <= $2 \
            ORDER BY not_before \(end)))) ORDER BY id
            """, [steady, wall, limit, starts.due ?? .min], atMost: limit)
    }

    func dueTimes(after steady: SteadyTime, _ wall: Timestamp) throws(StoreError) -> DueTimes {
        try flushJobs()
        let found = try rows(
            """
            SELECT least((SELECT min(due) FROM jobs WHERE state < 4 AND due >= $1 AND removing = 0), \
            (SELECT min(deadline) FROM jobs WHERE state < 4 AND deadline >= $1 AND removing = 0)), \
            (SELECT min(not_before) FROM jobs \
            WHERE state = 0 AND due IS NULL AND not_before > $2 AND removing = 0), \
            (SELECT min(next) FROM schedules WHERE next > $2), \
            (SELECT min(finished_at) FROM jobs WHERE \(Self.isFinished))
            """, max(starts.due ?? .min, steady.saturatingAdding(1)), wall.milliseconds
        ).first
        let steady = found?.optionalInteger(0)
        starts.found(due: steady)
        return DueTimes(
            steady: steady, wall: found?.time(1), schedules: found?.time(2), firstEnd: found?.time(3))
    }

    func lostRuns(limit: Int) throws(StoreError) -> [JobRow] {
        try jobs(
            by: "jobs_by_life",
            """
            run_life IS NOT NULL AND run_life NOT IN (SELECT life FROM deferd_lives WHERE NOT is_over) ORDER BY id
            """, [], atMost: limit)
    }

    func wasStopped(life: Int64) throws(StoreError) -> Bool? {
        try rows("SELECT is_clean FROM deferd_lives WHERE life = $1", life).first.map { $0.integer(0) != 0 }
    }

    func stranded(after: JobID, limit: Int) throws(StoreError) -> [JobRow] {
        try jobs(
            by: "jobs_pkey",
            """
            id = ANY (ARRAY(SELECT job FROM checkpoints WHERE job > ?1)) AND run_life IS NULL AND node <> '' \
            AND node NOT IN (SELECT node FROM deferd_lives WHERE NOT is_over) ORDER BY id
            """, [after], atMost: limit)
    }

    func forgetLostLives() throws(StoreError) {
        try write("UPDATE deferd_lives SET is_taken = true WHERE is_over AND NOT is_taken")
    }

    func finished(owner: UInt32?, before: Timestamp, limit: Int) throws(StoreError) -> [JobRow] {
        let condition = "\(Self.isFinished) AND finished_at < ?1\(owner == nil ? "" : " AND owner = ?2")"
        return try jobs(
            by: owner == nil ? "jobs_finished" : "jobs_finished_by_owner", "\(condition) ORDER BY finished_at, id",
            [before] + (owner.map { [$0] } ?? []), atMost: limit)
    }

    static var selectCounts: String { CountChanges.latest }

    func put(_ counts: [CountKey: CountValue]) throws(StoreError) {
        guard !counts.isEmpty else { return }
        let sorted = counts.sorted {
            ($0.key.owner, $0.key.queue, $0.key.state.code) < ($1.key.owner, $1.key.queue, $1.key.state.code)
        }
        let rows = PostgreSQLRowArrays(
            [.integer, .text, .integer, .integer, .integer, .integer],
            sorted.map {
                [$0.key.owner, $0.key.queue, $0.key.state.code, $0.value.jobs, $0.value.bytes, turn?.number ?? 0]
            })
        try write(
            """
            \(CountChanges.insert) \(rows.table) ON CONFLICT (number, owner, queue, state) \
            DO UPDATE SET jobs = excluded.jobs, bytes = excluded.bytes
            """, rows.parameters)
    }
}
