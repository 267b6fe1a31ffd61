package import JobModel
package import JobCore
import Synchronization

/// A change of a job's state or link, for its subscribers.
package final class JobEvent: Sendable {
    package let job: JobID
    package let state: JobState
    /// The version of the row, which tells whether the event or a snapshot is newer.
    package let version: Int64
    /// The text replaces the view, so that the result is not in memory twice.
    private let form: Mutex<(view: JobView?, text: [UInt8])>

    package init(_ change: JobChange, inlineResult: Int) {
        job = change.row.id
        state = change.row.state
        version = change.row.version
        let view = JobView(
            change.row, document: change.document, template: change.template, inlineResult: inlineResult)
        form = Mutex((view, []))
    }

    /// The text of the event, which the first subscriber writes for all others, on its own thread.
    package func text(_ write: (JobView) -> [UInt8]) -> [UInt8] {
        form.withLock { form in
            if let view = form.view { form = (nil, write(view)) }
            return form.text
        }
    }
}

/// What a subscriber is told of.
package enum JobUpdate: Sendable {
    /// Events are told in order.
    case event(JobEvent)
    /// Of running jobs: their progress, and the output of their programs.
    case progress(ProgressBatch)
    /// A job that another node removed, maybe before its end was told here, or that lost the tag that the subscriber covers.
    case gone(JobID)
    /// Changes of jobs that the subscriber does not name were missed; it ends, and its client has to watch again.
    case missed
}

/// Receives an update on the engine's thread; must return quickly.
package typealias JobSubscriber = @Sendable (JobUpdate) -> Void
