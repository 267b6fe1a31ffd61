package import JobModel
import Synchronization

/// A change of a job's state or link, as its subscribers get it.
package final class JobEvent: Sendable {
    package let job: JobID
    package let state: JobState
    private enum Form {
        case view(JobView)
        case text([UInt8])
    }

    /// The job until it was written: then its result need not be kept beside the text.
    private let form: Mutex<Form>

    package init(_ snapshot: JobView) {
        job = snapshot.job.id
        state = snapshot.job.state
        form = Mutex(.view(snapshot))
    }

    /// Whether nothing more comes about this job.
    package var isLast: Bool { state.isTerminal }

    /// The event as text, written by the first who asks and shared by all.
    package func text(_ write: (JobView) -> [UInt8]) -> [UInt8] {
        form.withLock { form in
            switch form {
            case .text(let text): return text
            case .view(let snapshot):
                let text = write(snapshot)
                form = .text(text)
                return text
            }
        }
    }
}

/// One who watches jobs.
package protocol JobSubscriber: AnyObject, Sendable {
    /// Whether nothing that it receives reaches anybody any more; it stays so.
    var isGone: Bool { get }

    /// Receives an event, on the engine's thread and in order; it must return quickly.
    func receive(_ event: JobEvent)

    /// Receives the progress that jobs made in an interval, in the same way.
    func receive(_ batch: ProgressBatch)
}
