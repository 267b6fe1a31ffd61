package import JobModel

extension MemoryTables {
    /// Those of the ids that are of jobs of `owner`; all where that is nil.
    func owned(_ ids: [JobID], by owner: UInt32?) -> [JobID] {
        owner.map { owner in ids.filter { rows[$0]?.job.owner == owner } } ?? ids
    }

    // MARK: Jobs

    func jobs(_ ids: [JobID]) -> [Job] { ids.compactMap(job) }

    /// The first `limit` of these jobs, without unreadable ones.
    func jobs(_ ids: some Sequence<JobID>, atMost limit: Int) -> [Job] {
        var found: [Job] = []
        guard limit > 0 else { return found }
        for id in ids {
            guard let job = job(id) else { continue }
            found.append(job)
            if found.count == limit { break }
        }
        return found
    }

    /// A page of these jobs, without unreadable ones.
    func page(_ ids: some Sequence<JobID>, limit: Int, withResults: Bool = true) -> StoredJobPage {
        var page = StoredJobPage(limit: limit)
        guard page.mayGrow else { return page }
        for id in ids {
            guard let job = job(id) else { continue }
            page.append(withResults ? job : job.withoutLongResult)
            if !page.mayGrow { break }
        }
        return page
    }

    func result(of id: JobID, offset: Int, length: Int) -> ResultPart? {
        guard let job = rows[id]?.job, job.state == .succeeded, case .success(let result) = job.carried else {
            return nil
        }
        return ResultPart(of: result.utf8, offset: offset, length: length)
    }

    private func job(_ id: JobID) -> Job? { rows[id].flatMap(job) }

    private func job(_ row: Row) -> Job? {
        switch row.body {
        case .whole: return row.job
        case .unreadable: return nil
        case .item(let item):
            guard let parent = row.job.parent, let template = template(of: parent) else { return nil }
            let spec = try? JobSpecReader.child(
                of: template.json, item: item, index: parent.index, queue: row.queue, priority: row.priority)
            return spec.map(row.job.reading)
        }
    }

    private func template(of parent: Job.Parent) -> Template? {
        templates[LinkKey(job: parent.job, link: parent.link)]
    }

    // MARK: Children

    func childKeys(of parent: JobID, link: Int, from index: Int = .min) -> some Sequence<ChildKey> {
        children.rows(from: ChildKey(parent: parent, link: link, index: index, id: .min)).lazy.map(\.key)
            .prefix { $0.parent == parent && $0.link == link }
    }

    func childStates(of parent: JobID, link: Int) -> [ChildState] {
        childKeys(of: parent, link: link).compactMap { key in
            rows[key.id].map { ChildState(id: key.id, index: key.index, state: $0.job.state) }
        }
    }

    func gated(of parent: JobID, link: Int, from index: Int, limit: Int) -> [ReadyJob] {
        gated.rows(from: ChildKey(parent: parent, link: link, index: index, id: .min)).lazy.map(\.key)
            .prefix { $0.parent == parent && $0.link == link }.prefix(max(0, limit)).compactMap { readyJob($0.id) }
    }

    func orphans(limit: Int) -> [Job] {
        let orphans = gated.rows().lazy.map(\.key).filter { key in
            rows[key.parent].map { $0.job.state.isTerminal || $0.job.link != key.link } ?? true
        }
        return jobs(orphans.map(\.id), atMost: limit)
    }

    // MARK: Ready jobs

    /// How many jobs for excluded hosts are passed over before the search goes on by host.
    private static let mostPassedOver = 256

    func ready(
        queue: String, owner: UInt32, after position: ReadyPosition?, excluding hosts: Set<String>, limit: Int
    ) -> [ReadyJob] {
        guard limit > 0, let ready = ready[ReadyGroup(queue: Name(queue), owner: owner)] else { return [] }
        var found: [ReadyPosition] = []
        var passedOver = 0
        for (next, host) in ready.all.rows(from: position?.next) {
            guard let host, hosts.contains(host.text) else {
                found.append(next)
                if found.count == limit { break }
                continue
            }
            passedOver += 1
            guard passedOver <= Self.mostPassedOver else {
                found += ready.positions(from: next, excluding: hosts, limit: limit - found.count)
                break
            }
        }
        return found.compactMap { readyJob($0.id) }
    }

    private func readyJob(_ id: JobID) -> ReadyJob? {
        guard let row = rows[id] else { return nil }
        var size = row.size
        if case .item = row.body { size += row.job.parent.flatMap(template)?.size ?? 0 }
        let isLarge = size > ReadyJob.largestStored
        // An unreadable job is left out, as in every list.
        let whole = isLarge ? nil : job(row)
        guard isLarge || whole != nil else { return nil }
        return ReadyJob(position: row.position, host: row.job.host, parent: row.job.parent, job: whole)
    }

    // MARK: Times

    func first(_ limit: Int, of keys: SortedKeys<TimedJob>, upTo time: Timestamp) -> [Job] {
        page(keys.rows().lazy.map(\.key).prefix { $0.time <= time }.map(\.id), limit: limit).jobs
    }

    var times: StoredTimes {
        StoredTimes(
            due: due.first?.time, deadline: deadlines.first?.time,
            firstEnd: finishedRoots.rows().compactMap(\.value.first?.time).min(),
            lastEnd: finishedRoots.rows().compactMap { $0.value.key(fromEnd: 0)?.time }.max())
    }

    // MARK: All jobs

    var recovery: StoredState {
        let running = kinds.rows().filter { $0.key.state == .running }.flatMap { kind in
            kind.value.ids.rows().map(\.key)
        }
        return StoredState(
            counts: counts, queues: settings.rows().map(\.value), running: running.sorted(),
            crashed: jobs(marks.rows().map(\.key)).filter { !$0.state.isTerminal }, times: times,
            schedules: plainSchedules)
    }

    private var counts: [JobCount] {
        var counts: [JobCount] = []
        for (kind, members) in kinds.rows() {
            var (count, bytes) = (members.ids.count, members.bytes)
            // Kinds of one owner, queue and state are neighbours.
            if let last = counts.last, last.owner == kind.owner, last.state == kind.state,
                Name(last.queue) == kind.queue
            {
                counts.removeLast()
                count += last.count
                bytes += last.bytes
            }
            counts.append(
                JobCount(owner: kind.owner, queue: kind.queue.text, state: kind.state, count: count, bytes: bytes))
        }
        return counts
    }

    // MARK: Lists

    func list(_ filter: JobFilter) -> [Job] {
        guard filter.limit > 0 else { return [] }
        let isNewest = filter.order == .newest
        if let parent = filter.parent {
            let start = ChildKey(parent: parent, link: .min, index: .min, id: .min)
            let ids = children.rows(from: start).lazy.map(\.key).prefix { $0.parent == parent }.map(\.id).sorted()
            return isNewest ? list(ids.reversed(), filter) : list(ids, filter)
        }
        if let tag = filter.tag {
            let (low, high) = (NamedID(tag, .min), NamedID(tag, .max))
            return isNewest
                ? list(tags.descending(before: high).lazy.map(\.key).prefix { $0.name == low.name }.map(\.id), filter)
                : list(tags.rows(from: low).lazy.map(\.key).prefix { $0.name == low.name }.map(\.id), filter)
        }
        // The first of each kind in question; the rest of it comes later than all of these.
        var filter = filter
        var page = StoredJobPage(limit: filter.limit)
        while page.mayGrow {
            let wanted = filter.limit - page.jobs.count
            var ids: [JobID] = []
            for (kind, members) in kinds.rows() where filter.fits(kind) {
                ids +=
                    isNewest
                    ? members.ids.descending(before: filter.after).lazy.map(\.key).prefix(wanted)
                    : members.ids.rows(from: filter.after.map { $0 &+ 1 }).lazy.map(\.key).prefix(wanted)
            }
            ids.sort(by: isNewest ? { $0 > $1 } : { $0 < $1 })
            for id in ids.prefix(wanted) where page.mayGrow {
                if let job = job(id) { page.append(job.withoutLongResult) }
            }
            // More are read in place of unreadable jobs, so that a short page is always the last one.
            guard ids.count >= wanted else { break }
            filter.after = ids[wanted - 1]
        }
        return page.jobs
    }

    private func list(_ ids: some Sequence<JobID>, _ filter: JobFilter) -> [Job] {
        page(
            ids.lazy.filter { id in rows[id].map { filter.fits($0) } ?? false }, limit: filter.limit, withResults: false
        )
        .jobs
    }
}

extension MemoryTables.Ready {
    /// The positions from `start` on without those for the hosts in `excluded`, whose jobs are not looked at.
    func positions(from start: ReadyPosition, excluding excluded: Set<String>, limit: Int) -> [ReadyPosition] {
        var first = Array(withoutHost.rows(from: start).lazy.map(\.key).prefix(limit))
        for (host, positions) in byHost.rows() where !excluded.contains(host.text) {
            let last = first.count >= limit ? first[limit - 1] : nil
            let count = first.count
            for (position, _) in positions.rows(from: start) {
                if first.count - count == limit || last.map({ $0 < position }) == true { break }
                first.append(position)
            }
            guard first.count > count else { continue }
            first.sort()
            first.removeLast(max(0, first.count - limit))
        }
        return first
    }
}

extension ReadyPosition {
    /// The first position behind this one.
    fileprivate var next: ReadyPosition {
        id == .max ? ReadyPosition(priority: priority &- 1, id: .min) : ReadyPosition(priority: priority, id: id + 1)
    }
}

extension JobFilter {
    fileprivate func fits(_ kind: RowKind) -> Bool {
        !kind.isChild && (states.isEmpty || states.contains(kind.state)) && (owner == nil || owner == kind.owner)
            && (queue.map { Name($0) == kind.queue } ?? true)
            && (source == nil || source?.rawValue == kind.source.text)
    }

    fileprivate func fits(_ row: MemoryTables.Row) -> Bool {
        let isInReach = after.map { order == .newest ? row.job.id < $0 : row.job.id > $0 } ?? true
        return isInReach && (parent != nil || row.job.parent == nil)
            && (states.isEmpty || states.contains(row.job.state)) && (owner == nil || owner == row.job.owner)
            && (queue.map { Name($0) == Name(row.queue) } ?? true)
            && (source == nil || source?.rawValue == row.source)
            && (parent == nil || tag.map { tag in row.tags.contains { Name($0) == Name(tag) } } ?? true)
    }
}

extension Job {
    /// The job as one who shows it reads it: a long result is left out.
    package var withoutLongResult: Job {
        guard state == .succeeded, case .success(let result) = carried else { return self }
        let size = result.size
        guard size > Self.longestResultRead else { return self }
        var job = self
        job.storedResult = size
        job.carried = .success(.null)
        return job
    }
}
