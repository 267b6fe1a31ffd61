/// The state of a job; `scheduled`, `queued` and `running` are unfinished, the other three terminal.
package enum JobState: String, Sendable, CaseIterable {
    /// Waits for a time: a delay or a retry.
    case scheduled
    /// Waits for a slot in its queue.
    case queued
    case running
    case succeeded
    case failed
    case cancelled

    package var isTerminal: Bool {
        switch self {
        case .scheduled, .queued, .running: false
        case .succeeded, .failed, .cancelled: true
        }
    }
}
