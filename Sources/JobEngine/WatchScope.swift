package import JobModel

/// What a watcher wants to hear of.
package struct WatchScope: Sendable, Hashable {
    package enum Subject: Sendable, Hashable {
        case jobs([JobID])
        case tag(String)
        case all
    }

    package var subject: Subject
    /// Seconds between two reports of a job's progress, at least.
    package var interval: Double
    package var includesChildren: Bool

    package init(_ subject: Subject, interval: Double = 0.25, includesChildren: Bool = false) {
        self.subject = subject
        self.interval = interval
        self.includesChildren = includesChildren
    }
}
