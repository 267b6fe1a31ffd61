import JobCore
import JobEngine
import JobModel
import JobProtocol

extension ProtocolError {
    /// A refusal of the core, as clients see it.
    init(_ error: CoreError) {
        func detail(_ name: String, _ value: JSON) -> [JSONObject.Member] {
            [JSONObject.Member(name: name, value: value)]
        }
        switch error.code {
        case .notFound: self.init(.notFound, error.message)
        case .forbidden(let pointer):
            self.init(
                .forbidden, error.message, pointer.map { detail("pointer", .string($0.description.echoed)) } ?? [])
        case .busy(let seconds): self.init(.busy, error.message, detail("retryAfter", JSON(seconds)))
        case .wrongState(let state): self.init(.wrongState, error.message, detail("state", .string(state.rawValue)))
        case .shuttingDown: self.init(.shuttingDown, error.message)
        case .keyConflict(let job): self.init(.keyConflict, error.message, detail("job", JSON(Int(job))))
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
