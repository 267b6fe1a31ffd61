package import JobModel

/// Something that happened to one job; all of a job's entries tell its story.
package struct JobLogEntry: Sendable, Hashable {
    package enum Event: Sendable, Hashable {
        case accepted
        /// It has its turn, for the first time or after a pause.
        case started
        /// The daemon started, and it goes on.
        case resumed
        /// A link ended, and another one follows.
        case linkEnded(Int, JobError?)
        /// The present link failed and is tried again in so many seconds.
        case retrying(in: Double, JobError)
        /// Its owner has it run again.
        case retried
        case succeeded
        case failed(JobError)
        case cancelled

        /// Whether it goes into the log before others where not all do.
        var isTrouble: Bool {
            switch self {
            case .failed, .retrying: true
            default: false
            }
        }
    }

    package let event: Event
    package let job: JobID
    package let parent: JobID?
    package let owner: UInt32
    package let queue: String
    /// The host (name and port) that its present link asks.
    package let host: String?
    package let link: Int
    package let attempt: Int
    /// Entries on its owner's jobs that were left out since the last one.
    package let leftOut: Int

    init(_ event: Event, of job: JobRow, leftOut: Int) {
        self.event = event
        self.job = job.id
        parent = job.parent?.job
        owner = job.owner
        queue = job.queue
        host = job.host
        link = job.link
        attempt = job.attempt
        self.leftOut = leftOut
    }

    /// What went wrong.
    package var error: JobError? {
        switch event {
        case .linkEnded(_, let error): error
        case .retrying(_, let error), .failed(let error): error
        default: nil
        }
    }

    /// Characters of an error's text that are written: clients choose it, and can let it come often.
    private static let mostText = 300

    package var message: String {
        let reason = error.map { ": \($0.kind.rawValue): \(String($0.message.prefix(Self.mostText)))" } ?? "."
        return switch event {
        case .accepted: "Job \(job) was accepted."
        case .started: "Job \(job) runs its link \(link), attempt \(attempt)."
        case .resumed: "Job \(job) goes on at its link \(link), as the daemon has started."
        case .linkEnded(let link, let error): "Link \(link) of job \(job) \(error == nil ? "ended" : "failed")\(reason)"
        case .retrying(let seconds, _): "Job \(job) tries its link \(link) again in \(JSON(seconds)) seconds\(reason)"
        case .retried: "Job \(job) runs again, as its owner asked."
        case .succeeded: "Job \(job) succeeded."
        case .failed: "Job \(job) failed\(reason)"
        case .cancelled: "Job \(job) was cancelled."
        }
    }
}

/// How much the log says of jobs.
package enum JobLogging: Sendable, Hashable {
    case none
    /// As much as fits into ``JobLogBudget``.
    case bounded
    case all
}
