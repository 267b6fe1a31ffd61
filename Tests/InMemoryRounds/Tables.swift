import JobModel

/// The rows, their indexes, and how to undo what the present round changed.
final class Tables {
    struct Ready: Hashable, Comparable {
        let queue: String
        let owner: UInt32
        let position: ReadyPosition

        static func < (left: Ready, right: Ready) -> Bool {
            if left.owner != right.owner { return left.owner < right.owner }
            if left.queue != right.queue { return left.queue < right.queue }
            return left.position < right.position
        }
    }

    struct Timed: Hashable, Comparable {
        let time: Int64
        let job: JobID

        static func < (left: Timed, right: Timed) -> Bool {
            left.time == right.time ? left.job < right.job : left.time < right.time
        }
    }

    struct Child: Hashable, Comparable {
        let parent: JobID
        let link: Int
        let list: Int64
        let job: JobID

        static func < (left: Child, right: Child) -> Bool {
            (left.parent, left.link, left.list, left.job) < (right.parent, right.link, right.list, right.job)
        }
    }

    struct Gated: Hashable, Comparable {
        let list: Int64
        let index: Int
        let job: JobID

        static func < (left: Gated, right: Gated) -> Bool {
            (left.list, left.index, left.job) < (right.list, right.index, right.job)
        }
    }

    struct Finished: Hashable, Comparable {
        let owner: UInt32
        let time: Int64
        let job: JobID

        static func < (left: Finished, right: Finished) -> Bool {
            (left.owner, left.time, left.job) < (right.owner, right.time, right.job)
        }
    }

    struct Key: Hashable {
        let owner: UInt32
        let text: String
    }

    struct LinkKey: Hashable, Comparable {
        let job: JobID
        let link: Int64

        static func < (left: LinkKey, right: LinkKey) -> Bool {
            left.job == right.job ? left.link < right.link : left.job < right.job
        }
    }

    private(set) var jobs: [JobID: JobRow] = [:]
    private(set) var documents: [JobID: NewJobRow.Document] = [:]
    private(set) var digests: [JobID: UInt64] = [:]
    private(set) var keys: [Key: JobID] = [:]
    private(set) var lists: [JobID: ListRow] = [:]
    /// By job and link.
    private(set) var templates: [LinkKey: [Int64: StoredValue]] = [:]
    private(set) var checkpoints: [LinkKey: [UInt8]] = [:]
    private(set) var checkpointLinks: [JobID: Set<Int64>] = [:]
    private(set) var schedules: [ScheduleKey: ScheduleRow] = [:]
    private(set) var specs: [ScheduleKey: [UInt8]] = [:]
    private(set) var queues: [String: QueueSettings] = [:]
    private(set) var counts: [CountKey: CountValue] = [:]
    private(set) var work: [Int64: WorkRow] = [:]
    private(set) var numbers: [String: Int64] = [:]
    var unreadable: Set<JobID> = []

    private(set) var ready = SortedIndex<Ready>()
    private(set) var due = SortedIndex<Timed>()
    private(set) var wallDue = SortedIndex<Timed>()
    private(set) var deadlines = SortedIndex<Timed>()
    private(set) var running = SortedIndex<Timed>()
    private(set) var suspects = SortedIndex<Timed>()
    private(set) var finished = SortedIndex<Finished>()
    private(set) var finishedOfAll = SortedIndex<Timed>()
    private(set) var children = SortedIndex<Child>()
    private(set) var gated = SortedIndex<Gated>()
    private(set) var workIDs = SortedIndex<Timed>()

    private var undoLog: [() -> Void] = []
    private var before: [JobID: JobRow?] = [:]

    var hasChanges: Bool { !undoLog.isEmpty }

    func undo() {
        for step in undoLog.reversed() { step() }
        undoLog = []
        before = [:]
    }

    /// Gives the jobs that changed, by id.
    func commit() -> [InMemoryRoundStore.Change] {
        undoLog = []
        defer { before = [:] }
        return before.keys.sorted().map { id in
            InMemoryRoundStore.Change(id: id, before: before[id] ?? nil, after: jobs[id])
        }
    }

    // MARK: - Jobs

    func set(_ job: JobRow?, _ id: JobID) {
        let old = jobs[id]
        if before[id] == nil { before[id] = .some(old) }
        undoLog.append { [unowned self] in replace(jobs[id], by: old, id) }
        replace(old, by: job, id)
    }

    private func replace(_ old: JobRow?, by new: JobRow?, _ id: JobID) {
        if let old { index(old, isThere: false) }
        jobs[id] = new
        if let new { index(new, isThere: true) }
    }

    private func index(_ job: JobRow, isThere: Bool) {
        func put<Key: Comparable>(_ key: Key, _ index: ReferenceWritableKeyPath<Tables, SortedIndex<Key>>) {
            if isThere { self[keyPath: index].insert(key) } else { self[keyPath: index].remove(key) }
        }
        if job.isReady { put(Ready(queue: job.queue, owner: job.owner, position: job.position), \.ready) }
        if !job.state.isTerminal {
            if let due = job.due { put(Timed(time: due, job: job.id), \.due) }
            if let deadline = job.deadline { put(Timed(time: deadline, job: job.id), \.deadlines) }
            if job.state == .scheduled, job.due == nil, let time = job.notBefore {
                put(Timed(time: time.milliseconds, job: job.id), \.wallDue)
            }
            if let run = job.run { put(Timed(time: run.life, job: job.id), \.running) }
            if job.crashes > 0 { put(Timed(time: 0, job: job.id), \.suspects) }
        }
        if job.state.isTerminal, job.parent == nil, !job.isRemoving {
            let time = job.finishedAt?.milliseconds ?? 0
            put(Finished(owner: job.owner, time: time, job: job.id), \.finished)
            put(Timed(time: time, job: job.id), \.finishedOfAll)
        }
        if let parent = job.parent {
            put(Child(parent: parent.job, link: parent.link, list: parent.list, job: job.id), \.children)
            if job.waiting == .gate, !job.state.isTerminal {
                put(Gated(list: parent.list, index: parent.index, job: job.id), \.gated)
            }
        }
    }

    // MARK: - Everything else

    /// Changes one entry of a table, and remembers how it was.
    private func set<Key: Hashable, Value>(
        _ table: ReferenceWritableKeyPath<Tables, [Key: Value]>, _ key: Key, _ value: Value?
    ) {
        let old = self[keyPath: table][key]
        undoLog.append { [unowned self] in self[keyPath: table][key] = old }
        self[keyPath: table][key] = value
    }

    func set(document: NewJobRow.Document?, digest: UInt64?, of job: JobID) {
        set(\.documents, job, document)
        if digest != nil || digests[job] != nil { set(\.digests, job, digest) }
    }

    func set(key: Key, _ job: JobID?) { set(\.keys, key, job) }
    func set(list: ListRow?, of job: JobID) { set(\.lists, job, list) }

    func set(template: StoredValue?, of list: ListRow) {
        let key = LinkKey(job: list.job, link: Int64(list.link))
        var all = templates[key] ?? [:]
        all[list.id] = template
        set(\.templates, key, all.isEmpty ? nil : all)
    }

    func dropTemplates(of job: JobID, fromLink link: Int) {
        for key in templates.keys where key.job == job && key.link >= Int64(link) { set(\.templates, key, nil) }
    }

    func set(checkpoint: [UInt8]?, of job: JobID, link: Int) {
        set(\.checkpoints, LinkKey(job: job, link: Int64(link)), checkpoint)
        var links = checkpointLinks[job] ?? []
        if checkpoint == nil { links.remove(Int64(link)) } else { links.insert(Int64(link)) }
        set(\.checkpointLinks, job, links.isEmpty ? nil : links)
    }

    func set(schedule: ScheduleRow?, spec: [UInt8]?, _ key: ScheduleKey) {
        set(\.schedules, key, schedule)
        if let spec { set(\.specs, key, spec) } else if schedule == nil { set(\.specs, key, nil) }
    }

    func set(queue: QueueSettings) { set(\.queues, queue.name, queue) }
    func set(count: CountValue, _ key: CountKey) { set(\.counts, key, count.jobs == 0 ? nil : count) }

    func set(work row: WorkRow?, _ id: Int64) {
        set(\.work, id, row)
        let key = Timed(time: 0, job: id)
        if row == nil { workIDs.remove(key) } else { workIDs.insert(key) }
        undoLog.append { [unowned self] in
            if work[id] == nil { workIDs.remove(key) } else { workIDs.insert(key) }
        }
        // The entry itself is restored by the step before, which runs after this one.
        undoLog.swapAt(undoLog.count - 1, undoLog.count - 2)
    }

    /// The next number of a kind; a number that a round has taken is not given again, also where it was undone.
    func next(_ name: String) -> Int64 {
        numbers[name, default: 0] += 1
        return numbers[name, default: 0]
    }

    var orphans: Int {
        documents.keys.count { jobs[$0] == nil } + keys.values.count { jobs[$0] == nil }
            + templates.keys.count { jobs[$0.job] == nil } + checkpoints.keys.count { jobs[$0.job] == nil }
    }
}
