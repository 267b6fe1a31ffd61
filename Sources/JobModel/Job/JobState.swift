/// The state of a job; the last three are terminal.
package enum JobState: String, Sendable, CaseIterable {
    /// Waits for a time: a delay or a retry.
    case scheduled
    /// Waits until its owner releases it.
    case held
    /// Waits for a slot in its queue.
    case queued
    case running, succeeded, failed, cancelled

    package var isTerminal: Bool {
        switch self {
        case .scheduled, .held, .queued, .running: false
        case .succeeded, .failed, .cancelled: true
        }
    }
}
