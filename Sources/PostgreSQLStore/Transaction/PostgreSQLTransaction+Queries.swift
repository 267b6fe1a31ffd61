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
        try flushJobs()
        let (rest, end) = ("removing = 0", "LIMIT $3")
        return try jobs(
            """
            SELECT \(JobColumns.selected) FROM jobs WHERE id IN (\
            (SELECT id FROM jobs WHERE state < 4 AND \(rest) AND due BETWEEN $4 AND $1 ORDER BY due \(end)) UNION \
            (SELECT id FROM jobs WHERE state < 4 AND \(rest) AND deadline BETWEEN $4 AND $1 \
            ORDER BY deadline \(end)) UNION \
            (SELECT id FROM jobs WHERE state = 0 AND due IS NULL AND \(rest) AND not_before <= $2 \
            ORDER BY not_before \(end))) ORDER BY id \(end)
            """, steady, wall, limit, starts.due ?? .min)
    }

    func dueTimes() throws(StoreError) -> DueTimes {
        try flushJobs()
        let found = try rows(
            """
            SELECT least((SELECT min(due) FROM jobs WHERE state < 4 AND due >= $1 AND removing = 0), \
            (SELECT min(deadline) FROM jobs WHERE state < 4 AND deadline >= $1 AND removing = 0)), \
            least((SELECT min(not_before) FROM jobs \
            WHERE state = 0 AND due IS NULL AND not_before IS NOT NULL AND removing = 0), \
            (SELECT min(next) FROM schedules WHERE next IS NOT NULL)), \
            (SELECT min(finished_at) FROM jobs WHERE \(Self.isFinished))
            """, starts.due ?? .min
        ).first
        let steady = found?.optionalInteger(0)
        starts.found(due: steady)
        return DueTimes(steady: steady, wall: found?.time(1), firstEnd: found?.time(2))
    }

    func lostRuns(limit: Int) throws(StoreError) -> [JobRow] {
        try flushJobs()
        return try jobs(
            """
            SELECT \(JobColumns.selected) FROM jobs WHERE run_life IS NOT NULL \
            AND run_life NOT IN (SELECT life FROM deferd_lives WHERE NOT is_over) ORDER BY id LIMIT $1
            """, limit)
    }

    func wasStopped(life: Int64) throws(StoreError) -> Bool? {
        try rows("SELECT is_clean FROM deferd_lives WHERE life = $1", life).first.map { $0.integer(0) != 0 }
    }

    func forgetLostLives() throws(StoreError) {
        try write("UPDATE deferd_lives SET is_taken = true WHERE is_over AND NOT is_taken")
    }

    func suspects(after: JobID, limit: Int) throws(StoreError) -> [JobRow] {
        try flushJobs()
        return try jobs(
            "SELECT \(JobColumns.selected) FROM jobs WHERE crashes > 0 AND state < 4 AND id > $1 ORDER BY id LIMIT $2",
            after, limit)
    }

    func children(
        of job: JobID, list: Int64, _ which: ChildSelection, after: JobID, limit: Int
    ) throws(StoreError) -> [JobRow] {
        try flushJobs()
        // The ids of children are in the order of their indexes.
        let condition =
            switch which {
            case .all:
                """
                AND parent_index >= coalesce((SELECT parent_index FROM jobs WHERE id = $3), 0) ORDER BY parent_index, id
                """
            case .unfinished: "AND state < 4 ORDER BY id"
            case .gated: "AND state < 4 AND waiting = 1 ORDER BY id"
            }
        return try jobs(
            "SELECT \(JobColumns.selected) FROM jobs WHERE parent = $1 AND list = $2 AND id > $3 \(condition) LIMIT $4",
            job, list, after, limit)
    }

    func children(of job: JobID, fromLink link: Int, limit: Int) throws(StoreError) -> [JobRow] {
        try flushJobs()
        return try jobs(
            "SELECT \(JobColumns.selected) FROM jobs WHERE parent = $1 AND parent_link >= $2 ORDER BY list, parent_index, id LIMIT $3",
            job, link,
            limit)
    }

    /// The condition of the index on finished root jobs.
    private static let isFinished = "state >= 4 AND parent IS NULL AND removing = 0 AND awaited = 0"

    func finished(owner: UInt32?, before: Timestamp, limit: Int) throws(StoreError) -> [JobRow] {
        try flushJobs()
        let select = "SELECT \(JobColumns.selected) FROM jobs WHERE \(Self.isFinished) AND finished_at < $1"
        let order = "ORDER BY finished_at, id LIMIT $2"
        guard let owner else { return try jobs("\(select) \(order)", before, limit) }
        return try jobs("\(select) AND owner = $3 \(order)", before, limit, owner)
    }

    /// The jobs that a query finds, in its order, without damaged ones. The round keeps them.
    private func jobs(_ sql: String, _ values: (any Bindable)?...) throws(StoreError) -> [JobRow] {
        try query(sql, values).map { row in
            if let entry = jobs.entries[JobColumns.id(row)] { return entry.row }
            let job = self.row(row)
            if let job { jobs.keep(job) }
            return job
        }
    }

    func counts() throws(StoreError) -> [CountKey: CountValue] {
        let counts = try rows(CountChanges.latest).map { row throws(StoreError) in
            damage.legible("A count of jobs", try CountKey.count(row))
        }
        return Dictionary(counts) { $1 }
    }

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
