/// The state of a job. `scheduled`, `queued` and `running` go on; the other three are terminal.
package enum JobState: String, Sendable, CaseIterable {
    /// Waits for a time: a delay or a retry.
    case scheduled
    /// Waits for a slot of its queue.
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
