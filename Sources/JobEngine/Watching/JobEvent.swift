package import JobModel
package import JobCore
import Synchronization

/// A change of a job's state or link, as its subscribers get it.
package final class JobEvent: Sendable {
    package let job: JobID
    package let state: JobState
    /// Tells which of this and a look at the row is the newer.
    package let version: Int64
    private enum Form {
        case change(JobChange, inlineResult: Int)
        case text([UInt8])
    }

    /// The job until it was written: then its result need not be kept beside the text.
    private let form: Mutex<Form>

    package init(_ change: JobChange, inlineResult: Int) {
        job = change.row.id
        state = change.row.state
        version = change.row.version
        form = Mutex(.change(change, inlineResult: inlineResult))
    }

    /// Whether nothing more comes about this job.
    package var isLast: Bool { state.isTerminal }

    /// The event as text, written by the first subscriber that asks and shared by all. The job's spec and result are read then, and
    /// not on the engine.
    package func text(_ write: (JobView) -> [UInt8]) -> [UInt8] {
        form.withLock { form in
            switch form {
            case .text(let text): return text
            case .change(let change, let inlineResult):
                let job = Job(change.row, document: change.document, template: change.template)
                let text = write(JobView(job, inlineResult: inlineResult))
                form = .text(text)
                return text
            }
        }
    }
}

/// A client that watches jobs.
package protocol JobSubscriber: AnyObject, Sendable {
    /// Whether nothing that it receives reaches its client any more; it stays so.
    var isGone: Bool { get }

    /// Receives an event, on the engine's thread and in order; it must return quickly.
    func receive(_ event: JobEvent)

    /// Receives the progress that jobs made in an interval, in the same way.
    func receive(_ batch: ProgressBatch)
}
