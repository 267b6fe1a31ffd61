import JobModel

extension SQLiteTransaction {
    func ready(
        queue: String, owner: UInt32, after position: ReadyPosition?, excluding hosts: Set<String>, limit: Int
    ) throws(StoreError) -> [ReadyRow] {
        try flushJobs(for: .ready(queue: queue, owner: owner))
        return try ReadySearch(
            connection: connection, damage: damage, queue: queue, owner: owner, position: position, excluded: hosts,
            limit: limit
        ).rows()
    }

    func due(steady: SteadyTime, wall: Timestamp, limit: Int) throws(StoreError) -> [JobRow] {
        try flushJobs(for: nil)
        guard limit > 0 else { return [] }
        let times = [
            ("due", "jobs_due WHERE state < 4 AND removing = 0", steady),
            ("deadline", "jobs_by_deadline WHERE state < 4 AND removing = 0", steady),
            ("not_before", "jobs_due_by_wall WHERE state = 0 AND due IS NULL AND removing = 0", wall.milliseconds),
        ]
        return try legible { () throws(StoreError) in
            var found: Set<JobID> = []
            for (column, index, time) in times {
                let select = try statement(
                    "SELECT id FROM jobs INDEXED BY \(index) AND \(column) <= ?1 ORDER BY \(column)", time)
                let ids = try select.rows(atMost: limit) { row throws(StoreError) in
                    damage.isKnown("Job \(row.integer(0))") ? nil : row.integer(0)
                }
                found.formUnion(ids)
            }
            return Array(found.sorted().prefix(limit))
        }
    }

    func dueTimes() throws(StoreError) -> DueTimes {
        try flushJobs(for: nil)
        func first(_ sql: String) throws(StoreError) -> Int64? { try statement(sql).number() }
        var times = DueTimes()
        times.steady = [
            try first("SELECT min(due) FROM jobs WHERE state < 4 AND due IS NOT NULL AND removing = 0"),
            try first("SELECT min(deadline) FROM jobs WHERE state < 4 AND deadline IS NOT NULL AND removing = 0"),
        ].compactMap(\.self).min()
        times.wall = [
            try first(
                """
                SELECT min(not_before) FROM jobs \
                WHERE state = 0 AND due IS NULL AND not_before IS NOT NULL AND removing = 0
                """),
            try first("SELECT min(next) FROM schedules WHERE next IS NOT NULL"),
        ].compactMap(\.self).min().map(Timestamp.init(milliseconds:))
        for owner in try finishedOwners() {
            let end = try statement("SELECT min(finished_at) FROM jobs WHERE \(Self.isFinished) AND owner = ?1", owner)
            guard let time = try end.number().map(Timestamp.init(milliseconds:)) else { continue }
            times.firstEnd = min(time, times.firstEnd ?? time)
        }
        return times
    }

    func lostRuns(limit: Int) throws(StoreError) -> [JobRow] {
        try flushJobs(for: nil)
        return try rows(
            "jobs_by_life WHERE run_life IS NOT NULL AND (run_life < ?1 OR run_life > ?1) ORDER BY id", life,
            atMost: limit)
    }

    func suspects(after: JobID, limit: Int) throws(StoreError) -> [JobRow] {
        try flushJobs(for: nil)
        return try rows("jobs_suspected WHERE crashes > 0 AND state < 4 AND id > ?1 ORDER BY id", after, atMost: limit)
    }

    func children(
        of job: JobID, list: Int64, _ which: ChildSelection, after: JobID, limit: Int
    ) throws(StoreError) -> [JobRow] {
        try flushJobs(for: .children(of: job))
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
        return try rows(condition, job, list, after, atMost: limit)
    }

    func children(of job: JobID, fromLink link: Int, limit: Int) throws(StoreError) -> [JobRow] {
        try flushJobs(for: .children(of: job))
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
        try flushJobs(for: nil)
        let owners = if let owner { [Int64(owner)] } else { try finishedOwners() }
        return try legible { () throws(StoreError) in
            var ends: [(time: Int64, id: JobID)] = []
            for owner in owners {
                let select = try statement(
                    """
                    SELECT id, finished_at FROM jobs INDEXED BY jobs_finished WHERE \(Self.isFinished) \
                    AND owner = ?1 AND finished_at < ?2 ORDER BY finished_at, id
                    """, owner, before)
                ends += try select.rows(atMost: limit) { row throws(StoreError) in
                    damage.isKnown("Job \(row.integer(0))") ? nil : (row.integer(1), row.integer(0))
                }
            }
            return ends.sorted { ($0.time, $0.id) < ($1.time, $1.id) }.prefix(limit).map(\.id)
        }
    }

    /// The owners of finished root jobs, in order.
    private func finishedOwners() throws(StoreError) -> [Int64] {
        try connection.distinct("SELECT min(owner) FROM jobs WHERE \(Self.isFinished) AND owner > ?1")
    }

    func counts() throws(StoreError) -> [CountKey: CountValue] {
        let counts = try statement("SELECT owner, queue, state, jobs, bytes FROM counts").rows {
            row throws(StoreError) in
            damage.legible("A count of jobs", try CountKey.count(row))
        }
        return Dictionary(counts) { $1 }
    }

    func put(_ counts: [CountKey: CountValue]) throws(StoreError) {
        for (key, value) in counts {
            if value.jobs == 0 {
                let delete = "DELETE FROM counts WHERE owner = ?1 AND queue = ?2 AND state = ?3"
                try statement(delete, key.owner, key.queue, key.state.code).run()
            } else {
                try statement(
                    "INSERT OR REPLACE INTO counts (owner, queue, state, jobs, bytes) VALUES (?1, ?2, ?3, ?4, ?5)",
                    key.owner, key.queue, key.state.code, value.jobs, value.bytes
                ).run()
            }
        }
    }

    // MARK: Damaged rows

    /// The jobs of an index that fit a condition, without damaged ones.
    private func rows(
        _ condition: String, _ values: (any Bindable)?..., atMost limit: Int
    ) throws(StoreError) -> [JobRow] {
        try statement("SELECT \(JobColumns.selected) FROM jobs INDEXED BY \(condition)", values)
            .rows(atMost: limit, row)
    }

    /// The jobs that `find` finds; calls it again as long as one of them is damaged.
    private func legible(_ find: () throws(StoreError) -> [JobID]) throws(StoreError) -> [JobRow] {
        while true {
            let ids = try find()
            var found: [JobRow] = []
            for id in ids {
                // An index may name a job that has no row.
                if let row = try job(id) { found.append(row) } else { damage.tell(of: "Job \(id)") }
            }
            if found.count == ids.count { return found }
        }
    }
}
