package import JobModel

/// The job store as a value: it carries commands out at once and in memory. Every other store is compared with it.
///
/// The same commands give the same answers, always. A copy is cheap: what a crash would leave is a copy made before it.
package struct MemoryTables: Sendable {
    /// How a job is stored.
    struct Row: Sendable {
        enum Body: Sendable {
            case whole
            /// The spec is made of this and a template; the job has a stand-in.
            case item(JSON)
            /// The spec cannot be read.
            case unreadable
        }

        var job: Job
        let body: Body
        let queue: String
        let priority: Int
        let source: String
        let tags: [String]
        var size: Int64
    }

    /// The jobs of one kind.
    struct Members: Sendable {
        var ids = SortedKeys<JobID>()
        var bytes: Int64 = 0
    }

    /// The ready jobs of an owner in a queue, all and by host.
    struct Ready: Sendable {
        var all = SortedRows<ReadyPosition, Name?>()
        var byHost = SortedRows<Name, SortedKeys<ReadyPosition>>()
        var withoutHost = SortedKeys<ReadyPosition>()
    }

    struct Template: Sendable {
        let json: JSON
        let size: Int64
    }

    var lastJob: JobID = 0
    var rows = SortedRows<JobID, Row>(largestChunk: 64)
    var kinds = SortedRows<RowKind, Members>()
    var ready = SortedRows<ReadyGroup, Ready>()
    var gated = SortedKeys<ChildKey>()
    var due = SortedKeys<TimedJob>()
    var deadlines = SortedKeys<TimedJob>()
    /// By owner.
    var finishedRoots = SortedRows<UInt32, SortedKeys<TimedJob>>()
    var children = SortedKeys<ChildKey>()
    var keys = SortedRows<NamedID, JobID>()
    var tags = SortedKeys<NamedID>()
    var templates = SortedRows<LinkKey, Template>()
    var checkpoints = SortedRows<LinkKey, JSON>()
    var downloads = SortedRows<Name, JSON>()
    var settings = SortedRows<Name, QueueSettings>()
    var schedules = SortedRows<ScheduleKey, StoredSchedule>()
    /// The marked jobs, and whether a daemon before this one was killed while they were at work.
    var marks = SortedRows<JobID, Bool>()

    package init() {}

    /// How many jobs are stored.
    package var count: Int { rows.count }

    /// Carries a change out.
    package mutating func write(_ write: StoreWrite) -> StoreWritten {
        switch write {
        case .submit(let jobs): return .submitted(jobs.map { submit($0) })
        case .children(let children): return .numbered(insert(children))
        case .save(let jobs):
            for job in jobs { save(job) }
            return .done
        case .remove(let job): return .removed(remove(tree(of: [job])))
        case .removeChildren(let parent, let link): return .removed(removeChildren(of: parent, fromLink: link))
        case .purge(let time, let kept, let limit):
            return .removed(purge(finishedBefore: time, keeping: kept, atMost: limit))
        case .purgeOldest(let count, let bytes, let owner):
            return .removed(purgeOldest(count, freeing: bytes, of: owner))
        case .queue(let queue):
            settings.set(Name(queue.name), queue)
            return .done
        case .setSchedule(let schedule, let spec):
            set(schedule, spec: spec)
            return .done
        case .advance(let schedule, let job): return .submitted(advance(schedule, job))
        case .removeSchedule(let key):
            schedules.remove(key)
            return .done
        case .probe: return .done
        }
    }

    /// Answers a question.
    package func read(_ read: StoreRead) -> StoreRows {
        switch read {
        case .recovery: .recovery(recovery)
        case .jobs(let ids, let owner): .jobs(jobs(owned(ids, by: owner)).map(\.withoutLongResult))
        case .firstJobs(let ids, let owner):
            .jobs(page(owned(ids, by: owner), limit: ids.count, withResults: false).jobs)
        case .states(let ids, let owner):
            .states(Dictionary(owned(ids, by: owner).compactMap { id in rows[id].map { (id, $0.job.state) } }) { $1 })
        case .list(let filter): .jobs(list(filter))
        case .result(let job, let offset, let length): .result(result(of: job, offset: offset, length: length))
        case .children(let parent, let link, let start, let limit):
            .jobs(page(childKeys(of: parent, link: link, from: start).lazy.map(\.id), limit: limit).jobs)
        case .childStates(let parent, let link): .childStates(childStates(of: parent, link: link))
        case .gated(let parent, let link, let start, let limit):
            .ready(gated(of: parent, link: link, from: start, limit: limit))
        case .orphans(let limit): .jobs(orphans(limit: limit))
        case .ready(let queue, let owner, let position, let hosts, let limit):
            .ready(ready(queue: queue, owner: owner, after: position, excluding: hosts, limit: limit))
        case .due(let time, let limit): .jobs(first(limit, of: due, upTo: time))
        case .overdue(let time, let limit): .jobs(first(limit, of: deadlines, upTo: time))
        case .times: .times(times)
        case .schedule(let key): .schedules(schedule(key))
        case .schedules(let key, let owner, let limit): .schedules(schedules(after: key, owner: owner, limit: limit))
        }
    }

    /// Marks that a source of a job is at work, or is no longer.
    package mutating func mark(_ job: JobID, isWorking: Bool) {
        if isWorking { marks.set(job, false) } else { marks.remove(job) }
    }

    /// Removes all marks, as a clean close does.
    package mutating func clearMarks() { marks = SortedRows() }

    /// A daemon starts after another was killed while the marked jobs were at work. Such a mark goes once its job is
    /// saved, as the crash is counted in the job then.
    package mutating func restart() {
        for mark in marks.rows() {
            // A job that is finished or removed needs no mark.
            if rows[mark.key]?.job.state.isTerminal ?? true {
                marks.remove(mark.key)
            } else {
                marks.set(mark.key, true)
            }
        }
    }

    /// The marked jobs, by id.
    package var marked: [JobID] { marks.rows().map(\.key) }
    package func isMarked(_ job: JobID) -> Bool { marks[job] != nil }

    // MARK: Beside the jobs

    package mutating func save(checkpoint: JSON?, of job: JobID, link: Int) {
        let key = LinkKey(job: job, link: link)
        guard let checkpoint else {
            checkpoints.remove(key)
            return
        }
        guard let state = rows[job]?.job.state, !state.isTerminal || state == .failed else { return }
        checkpoints.set(key, checkpoint)
    }

    package func checkpoint(of job: JobID, link: Int) -> JSON? { checkpoints[LinkKey(job: job, link: link)] }

    package func checkpoints(of job: JobID, links: ClosedRange<Int>) -> [Int: JSON] {
        var found: [Int: JSON] = [:]
        for row in checkpoints.rows(from: LinkKey(job: job, link: links.lowerBound)) {
            guard row.key.job == job, row.key.link <= links.upperBound else { break }
            found[row.key.link] = row.value
        }
        return found
    }

    package func unfinishedTransfers(of job: JobID?, atMost limit: Int) -> [UnfinishedTransfer] {
        let found = checkpoints.rows(from: LinkKey(job: job ?? .min, link: .min)).lazy.compactMap { row in
            rows[row.key.job].flatMap { stored -> UnfinishedTransfer? in
                let owner = stored.job
                guard job == nil || row.key.job == job, !owner.state.isTerminal, owner.link == row.key.link else {
                    return nil
                }
                return UnfinishedTransfer(
                    job: row.key.job, owner: owner.owner, link: row.key.link, checkpoint: row.value)
            }
        }
        return Array(found.prefix(limit))
    }

    package mutating func save(download: JSON, to path: String) {
        if download.utf8.count <= 4 << 10 { downloads.set(Name(path), download) } else { downloads.remove(Name(path)) }
    }

    package func download(to path: String) -> JSON? { downloads[Name(path)] }
}
