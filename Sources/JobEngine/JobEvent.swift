package import JobModel
import Synchronization

/// Something that happened to a job, as those who watch it are told.
package final class JobEvent: Sendable {
    package enum Change: Sendable {
        /// Its state or its link changed; the snapshot is the job object.
        case state(JobState, snapshot: JSON)
        case progress(link: Int, links: Int, Progress, coalesced: Int)
    }

    package let job: JobID
    package let change: Change
    private let text = Mutex<[UInt8]?>(nil)

    init(job: JobID, _ change: Change) {
        self.job = job
        self.change = change
    }

    /// Whether nothing more comes about this job.
    package var isLast: Bool {
        if case .state(let state, _) = change { state.isTerminal } else { false }
    }

    /// The event as text, written by the first who asks and shared by all.
    package func text(_ write: () -> [UInt8]) -> [UInt8] {
        text.withLock { text in
            if let text { return text }
            let written = write()
            text = written
            return written
        }
    }
}

/// One who watches jobs.
package protocol JobWatcher: AnyObject, Sendable {
    /// Takes an event, on the engine's queue, in the order of things; it must not take long.
    func receive(_ event: JobEvent)
}

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
