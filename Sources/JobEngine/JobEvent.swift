package import JobModel
import Synchronization

/// A job's state or its link changed, as those who watch it are told.
package final class JobEvent: Sendable {
    package let job: JobID
    package let state: JobState
    /// The job object.
    package let snapshot: JSON
    private let text = Mutex<[UInt8]?>(nil)

    init(job: JobID, _ state: JobState, snapshot: JSON) {
        self.job = job
        self.state = state
        self.snapshot = snapshot
    }

    /// Whether nothing more comes about this job.
    package var isLast: Bool { state.isTerminal }

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

    /// Likewise takes how far the jobs have come that made progress in an interval.
    func receive(_ batch: ProgressBatch)
}
