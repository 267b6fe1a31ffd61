package import JobModel

/// A log message.
package struct CoreLog: Sendable, Hashable {
    package enum Level: Sendable, Hashable {
        case info
        case notice
        case warning
        case error
        /// A broken invariant: a defect of the daemon.
        case defect
    }

    package enum Content: Sendable, Hashable {
        case message(String, job: JobID?, queue: String?)
        /// An event of a job, formatted only when written.
        case job(JobLogEntry)
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

    package init(_ entry: JobLogEntry) {
        level = .info
        content = .job(entry)
        if case .failed = entry.event { event = .jobFailed } else { event = nil }
    }

    package var message: String {
        switch content {
        case .message(let text, _, _): text
        case .job(let entry): entry.message
        }
    }
}
