import JobClient
import JobModel
import JobProtocol

/// Why a verb failed: a message for the user, and the exit status.
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

    /// The message, with the pointer into the spec or the params that it is about. The reason alone does without "Invalid params",
    /// which says nothing to somebody who typed options.
    private static func message(of error: JobClientError) -> String {
        guard let remote = error.rpc, remote.code == ProtocolError.Code.invalidParams.rawValue,
            let reason = remote.data["reason"]?.string
        else { return error.message }
        guard let pointer = remote.data["pointer"]?.string, !pointer.isEmpty else { return reason }
        return "\(reason) (at \(pointer))"
    }

    /// The failure for an error of a submission, which may or may not have been carried out.
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

/// The program's exit status; the numbers from 64 on are those of `sysexits.h`.
enum ExitStatus: Int32, Sendable, CaseIterable {
    case ok = 0
    case jobFailed = 1
    case jobCancelled = 2
    case usage = 64
    /// Bad data, or no such job.
    case badData = 65
    case unreachable = 69
    case bug = 70
    /// What was asked for could not be written.
    case output = 74
    /// Try again later, or come back: the program detached.
    case tryAgain = 75
    case forbidden = 77
    case configuration = 78

    /// The status for a job's state; for one that is not finished, `tryAgain`.
    init(jobState state: String) {
        switch state {
        case "succeeded": self = .ok
        case "failed": self = .jobFailed
        case "cancelled": self = .jobCancelled
        default: self = .tryAgain
        }
    }

    /// The status of several jobs: a failure outweighs a cancelled job, and that a success.
    static func worst(_ statuses: some Sequence<ExitStatus>) -> ExitStatus {
        statuses.max { $0.weight < $1.weight } ?? .ok
    }

    private var weight: Int {
        switch self {
        case .ok: 0
        case .jobCancelled: 1
        case .jobFailed: 2
        default: Int(rawValue)
        }
    }
}
