package import JobModel

/// The contents of a store as a value: copies are cheap and do not change with the store.
package struct StoredRows: Sendable {
    var jobs = SortedRows<JobID, JobEntry>()
    var openLists = SortedRows<JobID, ListRow>()
    /// By job and list.
    var templates = SortedRows<JobPart, Template>()
    /// By job and link.
    var checkpoints = SortedRows<JobPart, [UInt8]>()
    /// By target and job.
    var dependents = SortedKeys<NumberedID>()
    /// By job and target.
    var dependencies = SortedKeys<NumberedID>()
    var downloads = SortedRows<Name, [UInt8]>()
    var schedules = SortedRows<ScheduleKey, Schedule>()
    /// The specs of schedules.
    var specs = SortedRows<ScheduleKey, [UInt8]>()
    var queues = SortedRows<Name, QueueOverrides>()
    var work = SortedRows<Int64, WorkRow>()
    package var counts: [CountKey: CountValue] = [:]
    var numbers = Numbers()

    /// The last numbers assigned.
    struct Numbers: Hashable, Sendable {
        var job: JobID = 0
        var list: Int64 = 0
        var work: Int64 = 0
    }

    struct Template: Sendable {
        let link: Int
        let value: StoredValue
    }
}

// MARK: - For an oracle

extension StoredRows {
    package var jobCount: Int { jobs.count }
    /// All jobs, including damaged ones, by id.
    package var allJobs: some Sequence<JobRow> { jobs.rows().lazy.map(\.value.row) }
    /// Returns the jobs with an id above `id`, by id, to visit many of them in pieces.
    package func jobs(after id: JobID) -> some Sequence<JobRow> { jobs.rows(from: id &+ 1).lazy.map(\.value.row) }
    package func job(_ id: JobID) -> JobRow? { jobs[id]?.row }
    package func document(of job: JobID) -> NewJobRow.Document? { jobs[job]?.document }
    /// Returns whether a job still holds the key that it was submitted with.
    package func holdsKey(_ job: JobID) -> Bool { jobs[job]?.heldKey != nil }
    /// The open lists, by job.
    package var allLists: some Sequence<ListRow> { openLists.rows().lazy.map(\.value) }
    package func list(of job: JobID) -> ListRow? { openLists[job] }
    package func template(of parent: JobRow.Parent) -> StoredValue? {
        templates[JobPart(job: parent.job, number: parent.list)]?.value
    }
    /// The jobs and lists with a template.
    package var templateOwners: some Sequence<(job: JobID, list: Int64)> {
        templates.rows().lazy.map { ($0.key.job, $0.key.number) }
    }
    package func checkpoint(of job: JobID, link: Int) -> [UInt8]? {
        checkpoints[JobPart(job: job, number: Int64(link))]
    }
    /// The jobs and links with a checkpoint.
    package var checkpointOwners: some Sequence<(job: JobID, link: Int)> {
        checkpoints.rows().lazy.map { ($0.key.job, Int($0.key.number)) }
    }
    /// The jobs that need the outcome of a job, by id.
    package func dependents(of target: JobID) -> [JobID] {
        dependents.rows(from: NumberedID(number: target, id: .min)).lazy.map(\.key).prefix { $0.number == target }.map(
            \.id)
    }
    package func download(to path: String) -> [UInt8]? { downloads[Name(path)] }
    /// By key.
    package var allSchedules: some Sequence<Schedule> { schedules.rows().lazy.map(\.value) }
    package func spec(of schedule: ScheduleKey) -> [UInt8]? { specs[schedule] }
    package var allQueues: [String: QueueOverrides] {
        Dictionary(uniqueKeysWithValues: queues.rows().lazy.map { ($0.key.text, $0.value) })
    }
    /// Leftover work, by id.
    package var allWork: some Sequence<WorkRow> { work.rows().lazy.map(\.value) }
    package var workCount: Int { work.count }
}
