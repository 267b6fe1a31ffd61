import JobModel

extension SQLiteTransaction {
    func ready(
        queue: String, owner: UInt32, after position: ReadyPosition?, excluding hosts: Set<String>, limit: Int
    ) throws(StoreError) -> [ReadyRow] {
        try flushJobs()
        return try ReadySearch(
            connection: connection, damage: damage, queue: queue, owner: owner, position: position, excluded: hosts,
            limit: limit
        ).rows()
    }

    func due(steady: SteadyTime, wall: Timestamp, limit: Int) throws(StoreError) -> [JobRow] {
        try flushJobs()
        var found: [JobID: JobRow] = [:]
        for (column, index, time) in [
            ("due", "jobs_due WHERE state < 4 AND removing = 0", steady),
            ("deadline", "jobs_by_deadline WHERE state < 4 AND removing = 0", steady),
            ("not_before", "jobs_due_by_wall WHERE state = 0 AND due IS NULL AND removing = 0", wall.milliseconds),
        ] {
            let rows = try jobs("\(index) AND \(column) <= ?1 ORDER BY \(column)", time, atMost: limit)
            for row in rows { found[row.id] = row }
        }
        return Array(found.values.sorted { $0.id < $1.id }.prefix(limit))
    }

    func dueTimes() throws(StoreError) -> DueTimes {
        try flushJobs()
        let select = """
            SELECT (SELECT min(due) FROM jobs WHERE state < 4 AND due IS NOT NULL AND removing = 0), \
            (SELECT min(deadline) FROM jobs WHERE state < 4 AND deadline IS NOT NULL AND removing = 0), \
            (SELECT min(not_before) FROM jobs \
            WHERE state = 0 AND due IS NULL AND not_before IS NOT NULL AND removing = 0), \
            (SELECT min(next) FROM schedules WHERE next IS NOT NULL)
            """
        let found = try statement(select).row { row throws(StoreError) in
            DueTimes(
                steady: [row.optionalInteger(0), row.optionalInteger(1)].compactMap(\.self).min(),
                wall: [row.time(2), row.time(3)].compactMap(\.self).min())
        }
        var times = found ?? DueTimes()
        for owner in try finishedOwners() {
            let end = try statement("SELECT min(finished_at) FROM jobs WHERE \(Self.isFinished) AND owner = ?1", owner)
            guard let time = try end.number().map(Timestamp.init(milliseconds:)) else { continue }
            times.firstEnd = min(time, times.firstEnd ?? time)
        }
        return times
    }

    func lostRuns(limit: Int) throws(StoreError) -> [JobRow] {
        try flushJobs()
        return try jobs(
            "jobs_by_life WHERE run_life IS NOT NULL AND (run_life < ?1 OR run_life > ?1) ORDER BY id", life,
            atMost: limit)
    }

    func suspects(after: JobID, limit: Int) throws(StoreError) -> [JobRow] {
        try flushJobs()
        return try jobs("jobs_suspected WHERE crashes > 0 AND state < 4 AND id > ?1 ORDER BY id", after, atMost: limit)
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
                jobs_by_parent WHERE parent = ?1 AND list = ?2 AND id > ?3 \
                AND parent_index >= coalesce((SELECT parent_index FROM jobs WHERE id = ?3), 0) ORDER BY parent_index
                """
            case .unfinished:
                "jobs_unfinished_children WHERE parent = ?1 AND list = ?2 AND state < 4 AND id > ?3 ORDER BY id"
            case .gated:
                "jobs_gated WHERE parent = ?1 AND list = ?2 AND state < 4 AND waiting = 1 AND id > ?3 ORDER BY id"
            }
        return try jobs(condition, job, list, after, atMost: limit)
    }

    func children(of job: JobID, fromLink link: Int, limit: Int) throws(StoreError) -> [JobRow] {
        try flushJobs()
        // One list after the other, so that no children of earlier links are passed over.
        var (found, last): ([JobRow], Int64) = ([], .min)
        while found.count < limit {
            let next = try connection.statement(
                """
                SELECT list, parent_link FROM jobs INDEXED BY jobs_by_parent WHERE parent = ?1 AND list > ?2 \
                ORDER BY list LIMIT 1
                """, job, last)
            let lists = try next.rows { row throws(StoreError) in (id: row.integer(0), link: row.integer(1)) }
            guard let list = lists.first else { break }
            if list.link >= Int64(link) {
                found += try children(of: job, list: list.id, .all, after: 0, limit: limit - found.count)
            }
            last = list.id
        }
        return found
    }

    /// The condition of the index on finished root jobs.
    private static let isFinished = "state >= 4 AND parent IS NULL AND removing = 0 AND awaited = 0"

    func finished(owner: UInt32?, before: Timestamp, limit: Int) throws(StoreError) -> [JobRow] {
        try flushJobs()
        let owners = if let owner { [Int64(owner)] } else { try finishedOwners() }
        var found: [JobRow] = []
        for owner in owners {
            found += try jobs(
                """
                jobs_finished WHERE \(Self.isFinished) AND owner = ?1 AND finished_at < ?2 ORDER BY finished_at, id
                """, owner, before, atMost: limit)
        }
        return Array(found.sorted { ($0.finishedAt ?? before, $0.id) < ($1.finishedAt ?? before, $1.id) }.prefix(limit))
    }

    /// The owners of finished root jobs, in order.
    private func finishedOwners() throws(StoreError) -> [Int64] {
        try connection.distinct("SELECT min(owner) FROM jobs WHERE \(Self.isFinished) AND owner > ?1")
    }

    func counts() throws(StoreError) -> [CountKey: CountValue] {
        let select = "SELECT owner, queue, state, jobs, bytes FROM counts WHERE jobs > 0"
        let counts = try statement(select).rows { row throws(StoreError) in
            damage.legible("A count of jobs", try CountKey.count(row))
        }
        return Dictionary(counts) { $1 }
    }

    func put(_ counts: [CountKey: CountValue]) throws(StoreError) {
        for (key, value) in counts {
            try statement(
                "INSERT OR REPLACE INTO counts (owner, queue, state, jobs, bytes) VALUES (?1, ?2, ?3, ?4, ?5)",
                key.owner, key.queue, key.state.code, value.jobs, value.bytes
            ).run()
        }
    }

    /// The jobs of an index that fit a condition, without damaged ones. The round keeps them.
    private func jobs(
        _ condition: String, _ values: (any Bindable)?..., atMost limit: Int
    ) throws(StoreError) -> [JobRow] {
        let select = try statement("SELECT \(JobColumns.selected) FROM jobs INDEXED BY \(condition)", values)
        return try select.rows(atMost: limit) { row throws(StoreError) in
            if let entry = jobs.entries[JobColumns.id(row)] { return entry.row }
            let job = try self.row(row)
            if let job { jobs.keep(job) }
            return job
        }
    }
}
