import JobModel

/// The rows of a store with their indexes and the changes of the current round.
final class StoreTables {
    var readySearches = 0
    private(set) var rows = StoredRows()
    private(set) var jobs = JobIndexes()
    /// By their next time.
    private(set) var schedulesDue = SortedKeys<NumberedSchedule>()
    private(set) var schedulesByJob = SortedKeys<NumberedSchedule>()
    /// Excludes the removal of parts.
    private(set) var workByOwner = SortedKeys<NumberedID>()
    private(set) var workByJob = SortedKeys<JobWork>()
    private var journals = Journals(numbers: StoredRows.Numbers())

    init() {}

    /// Copies the current state of another, including its open round; later changes do not show.
    init(copying other: StoreTables) {
        rows = other.rows
        jobs = other.jobs
        schedulesDue = other.schedulesDue
        schedulesByJob = other.schedulesByJob
        workByOwner = other.workByOwner
        workByJob = other.workByJob
        journals = other.journals
    }

    // MARK: Rounds

    func begin() { journals = Journals(numbers: rows.numbers) }

    /// Whether the round has written anything.
    var isChanged: Bool { !journals.isEmpty || journals.numbers != rows.numbers }

    var changedJobs: [RowChange<JobID, JobRow>] { journals.jobs.changes({ rows.jobs[$0] }, \.row) }
    var changedWork: [RowChange<Int64, WorkRow>] { journals.work.changes({ rows.work[$0] }, \.self) }
    var changedSchedules: [RowChange<ScheduleKey, ScheduleRow>] {
        journals.schedules.changes({ rows.schedules[$0] }, \.self)
    }

    var changedCounts: [CountKey] { Array(journals.counts.before.keys) }
    var hasChangedQueues: Bool { !journals.queues.before.isEmpty }

    /// Restores the state at the start of the round.
    func undo() {
        for (key, entry) in journals.jobs.before { place(key, from: rows.jobs[key], to: entry) }
        for (key, row) in journals.lists.before { rows.openLists.place(key, row) }
        for (key, row) in journals.templates.before { rows.templates.place(key, row) }
        for (key, row) in journals.checkpoints.before { rows.checkpoints.place(key, row) }
        for (key, wasOne) in journals.dependents.before { place(dependent: key, wasOne == true) }
        for (key, row) in journals.downloads.before { rows.downloads.place(key, row) }
        for (key, row) in journals.schedules.before { place(key, row) }
        for (key, spec) in journals.specs.before { rows.specs.place(key, spec) }
        for (key, row) in journals.queues.before { rows.queues.place(key, row) }
        for (key, row) in journals.work.before { place(key, row) }
        for (key, row) in journals.counts.before { rows.counts[key] = row }
        rows.numbers = journals.numbers
        begin()
    }

    // MARK: Jobs

    func nextJob() -> JobID {
        rows.numbers.job += 1
        return rows.numbers.job
    }

    func setJob(_ id: JobID, _ entry: JobEntry?) {
        let old = rows.jobs[id]
        journals.jobs.note(id, old)
        place(id, from: old, to: entry)
    }

    private func place(_ id: JobID, from old: JobEntry?, to entry: JobEntry?) {
        jobs.change(from: old, to: entry)
        rows.jobs.place(id, entry)
    }

    // MARK: Parts of jobs

    func nextNumber() -> Int64 {
        rows.numbers.list += 1
        return rows.numbers.list
    }

    func setList(of job: JobID, _ list: ListRow?) {
        journals.lists.note(job, rows.openLists[job])
        rows.openLists.place(job, list)
    }

    func setTemplate(_ key: JobPart, _ template: StoredRows.Template?) {
        journals.templates.note(key, rows.templates[key])
        rows.templates.place(key, template)
    }

    func setCheckpoint(_ key: JobPart, _ text: [UInt8]?) {
        journals.checkpoints.note(key, rows.checkpoints[key])
        rows.checkpoints.place(key, text)
    }

    /// `key` is a target with a job that needs its outcome.
    func setDependent(_ key: NumberedID, _ isOne: Bool) {
        journals.dependents.note(key, rows.dependents[key] != nil)
        place(dependent: key, isOne)
    }

    private func place(dependent key: NumberedID, _ isOne: Bool) {
        rows.dependents.place(key, isOne ? () : nil)
        rows.dependencies.place(NumberedID(number: key.id, id: key.number), isOne ? () : nil)
    }

    private static let mostDownloads = 100_000

    func setDownload(_ record: [UInt8]?, to path: Name) {
        journals.downloads.note(path, rows.downloads[path])
        rows.downloads.place(path, record)
        // Any of them is as good for a simulation as the oldest.
        if rows.downloads.count > Self.mostDownloads, let first = rows.downloads.first { setDownload(nil, to: first) }
    }

    // MARK: Schedules

    func setSchedule(_ key: ScheduleKey, _ schedule: ScheduleRow?) {
        journals.schedules.note(key, rows.schedules[key])
        place(key, schedule)
    }

    func setSpec(_ key: ScheduleKey, _ spec: [UInt8]?) {
        journals.specs.note(key, rows.specs[key])
        rows.specs.place(key, spec)
    }

    private func place(_ key: ScheduleKey, _ schedule: ScheduleRow?) {
        let old = rows.schedules[key]
        schedulesDue.change(from: old?.dueKey, to: schedule?.dueKey)
        schedulesByJob.change(from: old?.jobKey, to: schedule?.jobKey)
        rows.schedules.place(key, schedule)
    }

    // MARK: Queues, work and counts

    func setQueue(_ name: Name, _ overrides: QueueOverrides?) {
        journals.queues.note(name, rows.queues[name])
        rows.queues.place(name, overrides)
    }

    func setCount(_ key: CountKey, _ count: CountValue?) {
        journals.counts.note(key, rows.counts[key])
        rows.counts[key] = count
    }

    func nextWork() -> Int64 {
        rows.numbers.work += 1
        return rows.numbers.work
    }

    func setWork(_ id: Int64, _ work: WorkRow?) {
        journals.work.note(id, rows.work[id])
        place(id, work)
    }

    private func place(_ id: Int64, _ work: WorkRow?) {
        let old = rows.work[id]
        workByOwner.change(from: old?.ownerKey, to: work?.ownerKey)
        workByJob.change(from: old?.jobKey, to: work?.jobKey)
        rows.work.place(id, work)
    }
}

extension ScheduleRow {
    fileprivate var dueKey: NumberedSchedule? {
        next.map { NumberedSchedule(number: $0.milliseconds, key: schedule.key) }
    }

    fileprivate var jobKey: NumberedSchedule? {
        schedule.lastJob.map { NumberedSchedule(number: $0, key: schedule.key) }
    }
}

extension WorkRow {
    fileprivate var ownerKey: NumberedID? {
        kind == .removeParts ? nil : NumberedID(number: Int64(owner), id: id)
    }

    fileprivate var jobKey: JobWork { JobWork(kind: kind, job: job, id: id) }
}
