import JobClient
import JobModel
import JobProtocol

/// Why a verb could not do its work: what to tell the user, and the program.
struct CommandFailure: Error, Sendable, Equatable {
    let status: ExitStatus
    /// One sentence that says what to do next.
    let message: String

    init(_ status: ExitStatus, _ message: String) {
        self.status = status
        self.message = message
    }

    init(_ error: JobClientError) {
        self.init(Self.status(of: error), Self.message(of: error))
    }

    /// The message, with the pointer into the spec or the params that it is about.
    private static func message(of error: JobClientError) -> String {
        guard let remote = error.rpc, remote.code == ProtocolError.Code.invalidParams.rawValue,
            let pointer = remote.data["pointer"]?.string, !pointer.isEmpty
        else { return error.message }
        return "\(error.message) (at \(pointer))"
    }

    /// What `error` comes to where it was met by a submission, which may have been carried out or not.
    init(submitting error: JobClientError) {
        guard error.code == .closed else {
            self.init(error)
            return
        }
        self.init(
            .unreachable,
            "The daemon went away before it answered, so it is not known whether the job was stored; look with "
                + "deferctl list. With a key a job can be submitted again without becoming two.")
    }

    /// What `error`, whatever it is, comes to.
    init(describing error: any Error) {
        switch error {
        case let failure as CommandFailure: self = failure
        case let error as JobClientError: self.init(error)
        default: self.init(.bug, "Something unforeseen went wrong: \(error). Please report it.")
        }
    }

    private static func status(of error: JobClientError) -> ExitStatus {
        switch error.code {
        case .unreachable, .closed: return .unreachable
        case .denied: return .forbidden
        case .cancelled, .slowReader, .tooManyCalls: return .tryAgain
        case .rpc: return error.rpc.map(status(of:)) ?? .bug
        default: return .bug
        }
    }

    private static func status(of error: JobClientError.Remote) -> ExitStatus {
        if error.kind == "line-too-long" { return .badData }
        return switch ProtocolError.Code(rawValue: error.code) {
        case .notFound, .wrongState, .keyConflict, .invalidParams: .badData
        case .forbidden: .forbidden
        case .busy, .shuttingDown, .timeout, .storage: .tryAgain
        case .parse, .invalidRequest, .methodNotFound, .internal, nil: .bug
        }
    }
}
