package import JobModel

/// What a request came to.
package enum CoreAnswer: Sendable {
    case failed(CoreError)
    case done
    /// In the order of the submission.
    case submitted([Result<SubmittedJob, CoreError>])
    case job(JobView)
    /// All jobs of a wait were finished; any of them can have been retried or removed since.
    case finished
    case unfinished
    case jobs([JobView])
    /// `next` is the id to go on after; nil at the end.
    case page([JobView], next: JobID?)
    /// Snapshots of what is watched; `isTruncated` where there were more than these.
    case watching([JobView], isTruncated: Bool)
    case result(JobResult)
    case queues([QueueStatus])
    case queue(QueueStatus)
    case schedule(ScheduleView)
    /// `next` is the name to go on after; nil at the end.
    case schedules([ScheduleView], next: ScheduleKey?)
    case statistics(CoreStatistics)
}

/// What became of a submission.
package struct SubmittedJob: Sendable, Hashable {
    package let job: JobID
    package let state: JobState
    /// False where the key joined an earlier job.
    package let isCreated: Bool
}

/// A change of a job's state or link.
package struct JobChange: Sendable {
    package let snapshot: JobView
    package var job: JobID { snapshot.job.id }
    package var state: JobState { snapshot.job.state }
    /// Whether nothing more comes about this job.
    package var isLast: Bool { state.isTerminal }
}

/// How far one job has come.
package struct ProgressRow: Sendable {
    package let job: JobID
    package let link: Int
    package let links: Int
    package let progress: Progress
    /// Reports that were merged into this one.
    package var coalesced: Int

    package init(job: JobID, link: Int, links: Int, _ progress: Progress, coalesced: Int) {
        self.job = job
        self.link = link
        self.links = links
        self.progress = progress
        self.coalesced = coalesced
    }
}

/// Where the result of a succeeded job is.
package enum JobResult: Sendable {
    case value(JSON)
    /// The part asked for of a value that was not in memory.
    case part(ResultPart)
    /// The body of a response, as it stands in the result.
    case body([UInt8])
    /// The body is in the file of this link.
    case file(link: Int)
}

package struct QueueStatus: Sendable {
    package let settings: QueueSettings
    /// The most slots that one owner gets.
    package let perUser: Int
    /// By state, of the jobs that the caller may see.
    package let jobs: [JobState: Int]
    /// Whether jobs can be submitted to it, and not only those run that it has.
    package let takesJobs: Bool
}

package struct CoreStatistics: Sendable {
    /// Seconds since the core started.
    package let uptime: Double
    package let jobs: [JobState: Int]
    package let totals: CoreTotals
    package let watches: Int
    /// Why nothing can be stored, while that is so.
    package let storageFailure: String?
}

/// What happened since the daemon started.
package struct CoreTotals: Sendable, Hashable {
    package var submitted = 0
    package var succeeded = 0
    package var failed = 0
    package var cancelled = 0
    package var retried = 0
    package var bytesReceived: Int64 = 0

    package init() {}

    static func + (left: CoreTotals, right: CoreTotals) -> CoreTotals {
        var sum = left
        sum.submitted += right.submitted
        sum.succeeded += right.succeeded
        sum.failed += right.failed
        sum.cancelled += right.cancelled
        sum.retried += right.retried
        sum.bytesReceived = sum.bytesReceived.saturatingAdding(right.bytesReceived)
        return sum
    }
}

/// The answer of each kind; nil for one of another.
extension CoreAnswer {
    package var submitted: [Result<SubmittedJob, CoreError>]? {
        if case .submitted(let jobs) = self { jobs } else { nil }
    }
    package var job: JobView? { if case .job(let job) = self { job } else { nil } }
    package var jobs: [JobView]? { if case .jobs(let jobs) = self { jobs } else { nil } }
    package var page: (jobs: [JobView], next: JobID?)? {
        if case .page(let jobs, let next) = self { (jobs, next) } else { nil }
    }
    package var watching: (jobs: [JobView], isTruncated: Bool)? {
        if case .watching(let jobs, let isTruncated) = self { (jobs, isTruncated) } else { nil }
    }
    package var result: JobResult? { if case .result(let result) = self { result } else { nil } }
    package var queues: [QueueStatus]? { if case .queues(let queues) = self { queues } else { nil } }
    package var queue: QueueStatus? { if case .queue(let queue) = self { queue } else { nil } }
    package var schedule: ScheduleView? { if case .schedule(let schedule) = self { schedule } else { nil } }
    package var schedules: (schedules: [ScheduleView], next: ScheduleKey?)? {
        if case .schedules(let schedules, let next) = self { (schedules, next) } else { nil }
    }
    package var statistics: CoreStatistics? { if case .statistics(let statistics) = self { statistics } else { nil } }
    package var isDone: Bool? { if case .done = self { true } else { nil } }
}
