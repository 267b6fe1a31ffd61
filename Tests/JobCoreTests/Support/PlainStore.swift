import JobModel

/// A store for tests that is as plain as can be: a dictionary that is searched and sorted for every question.
struct PlainStore {
    private(set) var jobs: [JobID: Job] = [:]
    private var lastID: JobID = 0
    private(set) var queues: [String: QueueSettings] = [:]
    private(set) var marks: Set<JobID> = []

    var all: [Job] { jobs.values.sorted { $0.id < $1.id } }

    mutating func mark(_ job: JobID, isWorking: Bool) {
        if isWorking { marks.insert(job) } else { marks.remove(job) }
    }

    mutating func clearMarks() { marks = [] }

    // MARK: - Writing

    mutating func write(_ write: StoreWrite) -> StoreWritten {
        switch write {
        case .submit(let jobs): return .submitted(jobs.map { submit($0) })
        case .children(let children): return .numbered(insert(children))
        case .save(let changed):
            for job in changed where jobs[job.id] != nil { jobs[job.id] = job }
            return .done
        case .remove(let id): return .removed(remove([id]))
        case .removeChildren(let parent, let link):
            return .removed(remove(children(of: parent).filter { ($0.parent?.link ?? 0) >= link }.map(\.id)))
        case .purge(let time, let kept, let most):
            let ended = finishedRoots
            let tooOld = ended.filter { $0.finishedAt.map { $0 < time } ?? false }.count
            return .removed(remove(ended.prefix(min(most, max(tooOld, ended.count - kept))).map(\.id)))
        case .purgeOldest(let count): return .removed(remove(finishedRoots.prefix(count).map(\.id)))
        case .queue(let queue):
            queues[queue.name] = queue
            return .done
        case .probe: return .done
        }
    }

    private mutating func submit(_ job: Job) -> Submission {
        if let key = job.spec.key, let earlier = all.first(where: { $0.spec.key == key && $0.owner == job.owner }) {
            return earlier.spec == job.spec ? .joined(earlier.id, earlier.state) : .conflict(earlier.id)
        }
        return .created(insert(job))
    }

    private mutating func insert(_ job: Job) -> JobID {
        lastID += 1
        var job = job
        job.id = lastID
        jobs[lastID] = job
        return lastID
    }

    private mutating func insert(_ new: NewChildren) -> [JobID] {
        guard jobs[new.parent.id] != nil else { return [] }
        jobs[new.parent.id] = new.parent
        return new.children.map { child in
            let parent = new.parent
            var job = Job(
                spec: Self.spec(of: child, new), owner: parent.owner,
                parent: Job.Parent(
                    job: parent.id, link: parent.link, index: child.index, depth: (parent.parent?.depth ?? 0) + 1),
                state: child.state, createdAt: child.createdAt, notBefore: child.notBefore,
                deadlineAt: child.deadlineAt)
            job.host = child.host
            job.isGated = child.isGated
            if case .invalid(let error) = child.body {
                job.carried = .failure(error)
                job.finishedAt = child.createdAt
            }
            return insert(job)
        }
    }

    private static func spec(of child: NewChild, _ new: NewChildren) -> JobSpec {
        var json: JSON = ["source": ["type": "error"]]
        switch child.body {
        case .spec(let written): json = written
        case .item(let item):
            let expansion = TemplateExpansion([.item: item, .index: JSON(child.index)])
            json = (try? expansion.child(new.template ?? .null)) ?? json
        case .invalid: break
        }
        guard let spec = try? JobSpecReader.stored(json) else { preconditionFailure("The child \(json) has no spec.") }
        return spec
    }

    private mutating func remove(_ roots: [JobID]) -> [RemovedJob] {
        var removed: [RemovedJob] = []
        for id in roots {
            guard let job = jobs.removeValue(forKey: id) else { continue }
            removed.append(
                RemovedJob(
                    id: id, owner: job.owner, queue: job.spec.queue, state: job.state, links: job.link,
                    size: job.storedSize))
            removed += remove(all.filter { $0.parent?.job == id }.map(\.id))
        }
        return removed
    }

    private var finishedRoots: [Job] {
        all.filter { $0.parent == nil && $0.state.isTerminal }.sorted {
            ($0.finishedAt ?? $0.createdAt, $0.id) < ($1.finishedAt ?? $1.createdAt, $1.id)
        }
    }

    // MARK: - Reading

    func children(of parent: JobID, link: Int? = nil) -> [Job] {
        all.filter { $0.parent?.job == parent && (link == nil || $0.parent?.link == link) }
            .sorted { ($0.parent?.index ?? 0, $0.id) < ($1.parent?.index ?? 0, $1.id) }
    }

    func read(_ read: StoreRead) -> StoreRows {
        switch read {
        case .recovery: return .recovery(recovery)
        case .jobs(let ids): return .jobs(ids.compactMap { jobs[$0] })
        case .list(let filter): return .jobs(list(filter))
        case .children(let parent, let link, let from, let limit):
            return .jobs(
                Array(children(of: parent, link: link).filter { ($0.parent?.index ?? 0) >= from }.prefix(limit)))
        case .childStates(let parent, let link):
            return .childStates(
                children(of: parent, link: link).map {
                    ChildState(id: $0.id, index: $0.parent?.index ?? 0, state: $0.state)
                })
        case .gated(let parent, let link, let from, let limit):
            let waiting = children(of: parent, link: link).filter {
                $0.isGated && $0.state == .queued && ($0.parent?.index ?? 0) >= from
            }
            return .ready(waiting.prefix(limit).map(Self.ready))
        case .ready(let queue, let owner, let after, let hosts, let limit):
            let waiting = all.filter { job in
                job.state == .queued && !job.isGated && job.spec.queue == queue && job.owner == owner
                    && !(job.host.map(hosts.contains) ?? false)
            }.map(Self.ready).sorted { $0.position < $1.position }
            return .ready(Array(waiting.filter { row in after.map { $0 < row.position } ?? true }.prefix(limit)))
        case .due(let time, let limit):
            return .jobs(first(limit, until: time) { $0.state == .scheduled ? $0.notBefore : nil })
        case .overdue(let time, let limit):
            return .jobs(first(limit, until: time) { $0.state.isTerminal ? nil : $0.deadlineAt })
        case .times: return .times(times)
        }
    }

    private static func ready(_ job: Job) -> ReadyJob {
        ReadyJob(
            position: ReadyPosition(priority: job.spec.priority, id: job.id), host: job.host, parent: job.parent,
            job: job.spec.size <= ReadyJob.largestInline ? job : nil)
    }

    private func first(_ limit: Int, until time: Timestamp, _ when: (Job) -> Timestamp?) -> [Job] {
        let due = all.filter { job in when(job).map { $0 <= time } ?? false }
        return Array(due.sorted { (when($0) ?? time, $0.id) < (when($1) ?? time, $1.id) }.prefix(limit))
    }

    private var times: StoredTimes {
        StoredTimes(
            due: all.compactMap { $0.state == .scheduled ? $0.notBefore : nil }.min(),
            deadline: all.compactMap { $0.state.isTerminal ? nil : $0.deadlineAt }.min(),
            firstEnd: finishedRoots.first?.finishedAt)
    }

    private var recovery: StoredState {
        struct Kind: Hashable {
            let owner: UInt32
            let queue: String
            let state: JobState
        }
        let kinds = Dictionary(grouping: all) { Kind(owner: $0.owner, queue: $0.spec.queue, state: $0.state) }
        let counts = kinds.map { kind, jobs in
            JobCount(
                owner: kind.owner, queue: kind.queue, state: kind.state, count: jobs.count,
                bytes: jobs.reduce(0) { $0 + $1.storedSize })
        }
        return StoredState(
            counts: counts, queues: queues.values.sorted { $0.name < $1.name },
            running: all.filter { $0.state == .running },
            crashed: all.filter { marks.contains($0.id) && !$0.state.isTerminal }, times: times)
    }

    private func list(_ filter: JobFilter) -> [Job] {
        let isNewest = filter.order == .newest
        let found = all.filter { job in
            (filter.states.isEmpty || filter.states.contains(job.state))
                && (filter.queue.map { $0 == job.spec.queue } ?? true)
                && (filter.tag.map(job.spec.tags.contains) ?? true)
                && (filter.source.map { $0 == job.spec.source.type } ?? true) && job.parent?.job == filter.parent
                && (filter.owner.map { $0 == job.owner } ?? true)
                && (filter.after.map { isNewest ? job.id < $0 : job.id > $0 } ?? true)
        }
        return Array((isNewest ? found.reversed() : found).prefix(filter.limit))
    }
}
