package import JobModel

/// An event of a job, for the log.
package struct JobLogEntry: Sendable, Hashable {
    package enum Event: Sendable, Hashable {
        case accepted
        /// A run started, for the first time or after a pause.
        case started
        /// The job continues after a daemon restart.
        case resumed
        /// A link ended and another follows.
        case linkEnded(Int, JobError?)
        /// The current link failed and is retried in this many seconds.
        case retrying(in: Double, JobError)
        /// Its owner retried it.
        case retried
        case succeeded
        case failed(JobError)
        case cancelled

        /// Whether it has priority when the log is limited.
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
    /// The host (name and port) of its current link.
    package let host: String?
    package let link: Int
    package let attempt: Int
    /// Entries about its owner's jobs dropped since the last one.
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

    package var error: JobError? {
        switch event {
        case .linkEnded(_, let error): error
        case .retrying(_, let error), .failed(let error): error
        default: nil
        }
    }

    /// The most characters of an error that are logged: clients choose the text and can repeat it often.
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

/// How much the log reports about jobs.
package enum JobLogging: Sendable, Hashable {
    case none
    /// As much as ``JobLogBudget`` allows.
    case bounded
    case all
}
