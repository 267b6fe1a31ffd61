package import JobModel

/// What a request came to.
package enum CoreAnswer: Sendable {
    case failed(CoreError)
    case done
    /// In the order of the submission.
    case submitted([Result<SubmittedJob, CoreError>])
    case job(JobSnapshot)
    case jobs([JobSnapshot])
    /// `next` is the id to go on after; nil at the end.
    case page([JobSnapshot], next: JobID?)
    /// Snapshots of what is watched; `isTruncated` where there were more than these.
    case watching([JobSnapshot], isTruncated: Bool)
    case result(JobResult)
    case queues([QueueStatus])
    case queue(QueueStatus)
    case statistics(CoreStatistics)
}

/// What became of a submission.
package struct SubmittedJob: Sendable, Hashable {
    package let job: JobID
    package let state: JobState
    /// False where the key joined an earlier job.
    package let isCreated: Bool
}

/// A job with the progress that it makes now.
package struct JobSnapshot: Sendable {
    package let job: Job
    package let progress: Progress?

    package init(job: Job, progress: Progress?) {
        self.job = job
        self.progress = progress
    }
}

/// A change of a job's state or link.
package struct JobChange: Sendable {
    package let snapshot: JobSnapshot
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
}

/// Where the result of a succeeded job is.
package enum JobResult: Sendable {
    case value(JSON)
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
