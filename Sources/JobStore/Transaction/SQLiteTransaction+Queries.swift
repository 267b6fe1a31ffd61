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

    func dueTimes() throws(StoreError) -> DueTimes {
        try flushJobs()
        let select = """
            SELECT (SELECT min(due) FROM jobs WHERE state < 4 AND due IS NOT NULL AND removing = 0), \
            (SELECT min(deadline) FROM jobs WHERE state < 4 AND deadline IS NOT NULL AND removing = 0), \
            (SELECT min(not_before) FROM jobs \
            WHERE state = 0 AND due IS NULL AND not_before IS NOT NULL AND removing = 0), \
            (SELECT min(next) FROM schedules WHERE next IS NOT NULL)
            """
        let found = try rows(select, [], atMost: 1) { row in
            DueTimes(
                steady: [row.optionalInteger(0), row.optionalInteger(1)].compactMap(\.self).min(),
                wall: [row.time(2), row.time(3)].compactMap(\.self).min())
        }
        var times = found.first ?? DueTimes()
        for owner in try finishedOwners() {
            let select = "SELECT min(finished_at) FROM jobs WHERE \(Self.isFinished) AND owner = ?1"
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
}
