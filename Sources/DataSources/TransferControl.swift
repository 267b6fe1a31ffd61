import JobModel
import Synchronization

/// Stops a running transfer from outside without cancelling it: it fails, and keeps what a retry can use.
final class TransferControl: Sendable {
    private let state = Mutex<(error: JobError?, stream: ResponseStream?)>((nil, nil))

    /// Whether the transfer was stopped, so that another server would not help either.
    var isInterrupted: Bool { state.withLock { $0.error != nil } }

    /// Names the response that the transfer now waits for. Throws where it was stopped before.
    func attach(_ stream: ResponseStream) throws(JobError) {
        let error = state.withLock { state in
            state.stream = stream
            return state.error
        }
        if let error { throw error }
    }

    /// Lets the transfer fail with `error` as soon as it waits for its server; what has come in is still taken.
    func interrupt(_ error: JobError) {
        let stream = state.withLock { state in
            if state.error == nil { state.error = error }
            return state.stream
        }
        stream?.fail(error)
    }
}
