import JobModel

/// The rows of a store with their indexes, and what the round under way has touched.
struct StoreTables {
    /// Keys of rows that a round has written, for an oracle and other nodes.
    struct Touched {
        var jobs: Set<JobID> = []
        var work: Set<Int64> = []
        var schedules: Set<ScheduleKey> = []
        var counts: Set<CountKey> = []
        var hasQueues = false
    }

    var rows = StoredRows() {
        didSet { isChanged = true }
    }
    private(set) var jobs = JobIndexes()
    /// By their next time.
    private(set) var schedulesDue = SortedKeys<NumberedSchedule>()
    private(set) var schedulesByJob = SortedKeys<NumberedSchedule>()
    /// Excludes the removal of parts.
    private(set) var workByOwner = SortedKeys<NumberedID>()
    private(set) var workByJob = SortedKeys<JobWork>()
    private(set) var touched = Touched()
    /// Whether the round has written anything.
    private(set) var isChanged = false
    var readySearches = 0

    mutating func begin() { (touched, isChanged) = (Touched(), false) }

    mutating func setJob(_ id: JobID, _ entry: JobEntry?) {
        touched.jobs.insert(id)
        jobs.change(from: rows.jobs[id], to: entry)
        rows.jobs.place(id, entry)
    }

    /// `key` is a target with a job that needs its outcome.
    mutating func setDependent(_ key: NumberedID, _ isOne: Bool) {
        rows.dependents.place(key, isOne ? () : nil)
        rows.dependencies.place(NumberedID(number: key.id, id: key.number), isOne ? () : nil)
    }

    mutating func setSchedule(_ key: ScheduleKey, _ schedule: Schedule?) {
        touched.schedules.insert(key)
        let old = rows.schedules[key]
        schedulesDue.change(from: old?.dueKey, to: schedule?.dueKey)
        schedulesByJob.change(from: old?.jobKey, to: schedule?.jobKey)
        rows.schedules.place(key, schedule)
    }

    mutating func setQueue(_ name: Name, _ overrides: QueueOverrides?) {
        touched.hasQueues = true
        rows.queues.place(name, overrides)
    }

    mutating func setCount(_ key: CountKey, _ count: CountValue?) {
        touched.counts.insert(key)
        rows.counts[key] = count
    }

    mutating func setWork(_ id: Int64, _ work: WorkRow?) {
        touched.work.insert(id)
        let old = rows.work[id]
        workByOwner.change(from: old?.ownerKey, to: work?.ownerKey)
        workByJob.change(from: old?.jobKey, to: work?.jobKey)
        rows.work.place(id, work)
    }
}

extension Schedule {
    fileprivate var dueKey: NumberedSchedule? {
        next.map { NumberedSchedule(number: $0.milliseconds, key: key) }
    }

    fileprivate var jobKey: NumberedSchedule? {
        lastJob.map { NumberedSchedule(number: $0, key: key) }
    }
}

extension WorkRow {
    fileprivate var ownerKey: NumberedID? {
        kind == .removeParts ? nil : NumberedID(number: Int64(owner), id: id)
    }

    fileprivate var jobKey: JobWork { JobWork(kind: kind, job: job, id: id) }
}
