import JobModel

extension InMemoryTransaction {
    // MARK: Ready jobs and times

    func ready(
        queue: String, owner: UInt32, after: ReadyPosition?, excluding hosts: Set<String>, limit: Int
    ) throws(StoreError) -> [ReadyRow] {
        try check()
        tables.readySearches += 1
        guard limit > 0, let jobs = tables.jobs.ready[ReadyGroup(queue: Name(queue), owner: owner)] else { return [] }
        var found: [ReadyRow] = []
        var last = after
        // Skips damaged jobs.
        while found.count < limit {
            let wanted = limit - found.count
            let rows = jobs.rows(after: last, excluding: hosts, limit: wanted)
            for row in rows where try isReadyHere(row.position.id) { found.append(row) }
            guard rows.count == wanted else { break }
            last = rows.last?.position
        }
        return found
    }

    func due(steady: SteadyTime, wall: Timestamp, limit: Int) throws(StoreError) -> [JobRow] {
        try check()
        guard limit > 0 else { return [] }
        var ids: Set<JobID> = []
        for (index, time) in [
            (tables.jobs.due, steady), (tables.jobs.deadlines, steady), (tables.jobs.wallDue, wall.milliseconds),
        ] {
            let due = index.rows().lazy.map(\.key).prefix { $0.number <= time }.map(\.id)
            ids.formUnion(due.filter { !self.isDamaged($0) }.prefix(limit))
        }
        return try rows(ids.sorted(), limit: limit)
    }

    func dueTimes(after steady: SteadyTime, _ wall: Timestamp) throws(StoreError) -> DueTimes {
        try check()
        let jobs = tables.jobs
        return DueTimes(
            steady: [first(jobs.due, after: steady), first(jobs.deadlines, after: steady)].compactMap(\.self).min(),
            wall: first(jobs.wallDue, after: wall.milliseconds).map(Timestamp.init(milliseconds:)),
            schedules: (tables.schedulesDue.rows().first { $0.key.number > wall.milliseconds }?.key.number).map(
                Timestamp.init(milliseconds:)),
            firstEnd: first(jobs.ends, after: .min).map(Timestamp.init(milliseconds:)))
    }

    /// As in a database, the times of damaged rows count.
    private func first(_ index: SortedKeys<NumberedID>, after time: Int64) -> Int64? {
        index.rows().first { $0.key.number > time }?.key.number
    }

    // MARK: Runs

    func stranded(after: JobID, limit: Int) throws(StoreError) -> [JobRow] {
        try check()
        let owners = Set(tables.rows.checkpointOwners.lazy.map(\.job).filter { $0 > after }).sorted()
        return try rows(owners, limit: .max).filter { $0.run == nil && $0.node.map(nodes.isGone) == true }
            .prefix(limit).map(\.self)
    }

    func lostRuns(limit: Int) throws(StoreError) -> [JobRow] {
        try check()
        var ids: [JobID] = []
        var lives = nodes.living.sorted()
        var start = Int64.min
        // The gaps between the lives that go on.
        while true {
            let end = lives.isEmpty ? Int64.max : lives.removeFirst()
            ids += tables.jobs.runs.rows(from: NumberedID(number: start, id: .min)).lazy.map(\.key)
                .prefix { $0.number < end }.map(\.id)
            guard end < .max else { break }
            start = end + 1
        }
        return try rows(ids.sorted(), limit: limit)
    }

    func wasStopped(life: Int64) throws(StoreError) -> Bool? {
        try check()
        return nodes.over[life]
    }

    func forgetLostLives() throws(StoreError) {
        try check()
        forgetsLost = true
    }

    func news() throws(StoreError) -> News? {
        try check()
        hasAskedForNews = true
        return nodes.news(for: life, tables.rows)
    }

    func suspects(after: JobID, limit: Int) throws(StoreError) -> [JobRow] {
        try check()
        return try rows(tables.jobs.suspects.rows(from: after &+ 1).lazy.map(\.key), limit: limit)
    }

    // MARK: Children

    func unfinishedChildren(
        of job: JobID, list: Int64, areGated: Bool, after: JobID, limit: Int
    ) throws(StoreError) -> [JobRow] {
        try check()
        let index = areGated ? tables.jobs.gatedChildren : tables.jobs.unfinishedChildren
        return try rows(children(index, of: job, list: list, after: after), limit: limit)
    }

    private func children(
        _ index: SortedKeys<ChildKey>, of job: JobID, list: Int64, after: JobID
    ) -> some Sequence<JobID> {
        index.rows(from: ChildKey(parent: job, list: list, id: after &+ 1)).lazy.map(\.key)
            .prefix { $0.parent == job && $0.list == list }.map(\.id)
    }

    func children(of job: JobID, fromLink link: Int, limit: Int) throws(StoreError) -> [JobRow] {
        try check()
        let index = tables.jobs.children
        var found: [JobRow] = []
        var start = ChildKey(parent: job, list: .min, id: .min)
        // Skips the children of a list of an earlier link unread.
        while found.count < limit, let key = index.rows(from: start).first(where: { _ in true })?.key, key.parent == job
        {
            if let parent = tables.rows.jobs[key.id]?.row.parent, parent.link >= link {
                let ids = children(index, of: job, list: key.list, after: .min)
                found += try rows(ids, limit: limit - found.count)
            }
            start = ChildKey(parent: job, list: key.list &+ 1, id: .min)
        }
        return found
    }

    // MARK: Dependencies

    func addDependency(of job: JobID, on target: JobID) throws(StoreError) {
        try check()
        tables.setDependent(NumberedID(number: target, id: job), true)
    }

    func removeDependency(of job: JobID, on target: JobID) throws(StoreError) {
        try check()
        tables.setDependent(NumberedID(number: target, id: job), false)
    }

    func dependents(of target: JobID, after: JobID, limit: Int) throws(StoreError) -> [JobID] {
        try check()
        return ids(tables.rows.dependents, of: target, after: after, limit: limit)
    }

    func dependencies(of job: JobID, limit: Int) throws(StoreError) -> [JobID] {
        try check()
        return ids(tables.rows.dependencies, of: job, after: 0, limit: limit)
    }

    private func ids(_ keys: SortedKeys<NumberedID>, of number: JobID, after: JobID, limit: Int) -> [JobID] {
        keys.rows(from: NumberedID(number: number, id: after &+ 1)).lazy.map(\.key)
            .prefix { $0.number == number }.prefix(max(0, limit)).map(\.id)
    }

    // MARK: Finished jobs

    func finished(owner: UInt32?, before: Timestamp, limit: Int) throws(StoreError) -> [JobRow] {
        try check()
        guard let owner else {
            let ends = tables.jobs.ends.rows().lazy.map(\.key).prefix { $0.number < before.milliseconds }
            return try rows(ends.map(\.id), limit: limit)
        }
        let start = OwnedEnd(owner: owner, end: NumberedID(number: .min, id: .min))
        let ends = tables.jobs.endsByOwner.rows(from: start).lazy.map(\.key)
            .prefix { $0.owner == owner && $0.end.number < before.milliseconds }
        return try rows(ends.map(\.end.id), limit: limit)
    }
}
