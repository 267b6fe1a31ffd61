import JobCore
import JobEngine
import JobModel
import JobProtocol

extension ProtocolError {
    /// An error of a call, as clients see it.
    init(of error: any Error) {
        switch error {
        case let error as ProtocolError: self = error
        case let error as SpecError: self.init(error)
        case let error as CoreError: self.init(error)
        case let error as StoreError: self.init(.storage, error.message)
        default: self.init(.internal, "\(error)")
        }
    }

    /// A refusal of the core.
    init(_ error: CoreError) {
        switch error.code {
        case .notFound: self.init(.notFound, error.message)
        case .forbidden(let pointer):
            self.init(.forbidden, error.message, ["pointer": pointer?.description.echoed.json])
        case .busy(let seconds): self.init(.busy, error.message, ["retryAfter": seconds.json])
        case .wrongState(let state): self.init(.wrongState, error.message, ["state": state.rawValue.json])
        case .shuttingDown: self.init(.shuttingDown, error.message)
        case .keyConflict(let job): self.init(.keyConflict, error.message, ["job": job.json])
        case .timeout: self.init(.timeout, error.message)
        case .storage: self.init(.storage, error.message)
        case .invalid(let pointer): self.init(SpecError(pointer, error.message))
        }
    }
}

/// The value of an answer; nil if it is of another kind.
extension CoreAnswer {
    var isDone: Bool? { if case .done = self { true } else { nil } }
    var changed: JobID? { if case .changed(let job) = self { job } else { nil } }
    var queue: QueueStatus? { if case .queue(let queue) = self { queue } else { nil } }
    var submitted: [Result<SubmittedJob, CoreError>]? { if case .submitted(let jobs) = self { jobs } else { nil } }
}
