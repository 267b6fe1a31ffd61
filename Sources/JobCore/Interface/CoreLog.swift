package import JobModel

/// A log message, composed only when it is written.
package struct CoreLog: Sendable {
    /// Its values are names of swift-log.
    package enum Level: String, Sendable {
        case info
        case notice
        case warning
        case error
        /// A broken invariant: a defect of the daemon.
        case defect = "critical"
    }

    package enum Content: Sendable {
        case message(String, job: JobID?, queue: String?)
        /// An event of a job, and how many events of jobs were left out before it.
        case event(Event, JobRow, leftOut: Int)
    }

    /// An event of a job.
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

        package var error: JobError? {
            switch self {
            case .linkEnded(_, let error): error
            case .retrying(_, let error), .failed(let error): error
            default: nil
            }
        }
    }

    package let level: Level
    package let content: Content
    /// The catalog event, if an administrator may want an alert.
    package let event: CatalogEvent?

    package init(
        _ level: Level, _ message: String, job: JobID? = nil, queue: String? = nil, event: CatalogEvent? = nil
    ) {
        self.level = level
        content = .message(message, job: job, queue: queue)
        self.event = event
    }

    init(_ event: Event, of job: JobRow, leftOut: Int) {
        level = .info
        content = .event(event, job, leftOut: leftOut)
        if case .failed = event { self.event = .jobFailed } else { self.event = nil }
    }

    package var message: String {
        switch content {
        case .message(let text, _, _): text
        case .event(let event, let job, _): event.message(of: job)
        }
    }
}

extension CoreLog.Event {
    /// The most characters of an error that are logged: clients choose the text and can repeat it often.
    private static let mostText = 300

    fileprivate func message(of row: JobRow) -> String {
        let (job, link) = (row.id, row.link)
        let reason = error.map { ": \($0.kind.rawValue): \(String($0.message.prefix(Self.mostText)))" } ?? "."
        return switch self {
        case .accepted: "Job \(job) was accepted."
        case .started: "Job \(job) runs its link \(link), attempt \(row.attempt)."
        case .resumed: "Job \(job) goes on at its link \(link), as the daemon that ran it has ended."
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
