import ArgumentParser
import JobClient
import JobModel
import JobProtocol

struct CommandFailure: Error, Sendable, Equatable {
    let status: ExitStatus
    let message: String

    init(_ status: ExitStatus, _ message: String) { (self.status, self.message) = (status, message) }

    init(_ error: JobClientError) {
        // "Invalid params" means nothing to a user who typed options, so only the reasons are shown.
        let reasons = error.mistakes.map { $0.pointer.tokens.isEmpty ? $0.reason : "\($0.reason) (at \($0.pointer))" }
        self.init(ExitStatus(error), reasons.isEmpty ? error.message : reasons.joined(separator: " "))
    }

    /// The failure of a submission: if the connection ended, the job may exist.
    init(submitting error: JobClientError) {
        guard error.code == .closed else {
            self.init(error)
            return
        }
        self = .inDoubt("the job")
    }

    /// The failure of submissions whose answers did not come.
    static func inDoubt(_ jobs: String) -> Self {
        Self(
            .unreachable,
            "The daemon closed the connection before it answered, so \(jobs) may or may not exist; look with: deferctl "
                + "list. A job with a key can be submitted again without running twice.")
    }
}

/// The exit status of the program; the numbers from 64 on are those of `sysexits.h`.
typealias ExitStatus = ExitCode

extension ExitStatus {
    static let ok = success
    static let jobFailed = Self(1)
    static let jobCancelled = Self(2)
    static let usage = Self(64)
    /// Bad data, or no such job.
    static let badData = Self(65)
    static let unreachable = Self(69)
    static let bug = Self(70)
    static let output = Self(74)
    /// Try again later, or the program detached.
    static let tryAgain = Self(75)
    static let forbidden = Self(77)
    static let configuration = Self(78)

    /// The status of the program that a job ran, as a shell would give it: 128 and its number for a signal.
    init?(programOf job: JobSnapshot) {
        let program = job.error?["program"]
        guard let status = program?["exit"]?.int ?? program?["signal"]?.int.map({ $0 &+ 128 }),
            (1...255).contains(status)
        else { return nil }
        self.init(rawValue: Int32(status))
    }

    init(jobState state: String) {
        self =
            switch state {
            case "succeeded": .ok
            case "failed": .jobFailed
            case "cancelled": .jobCancelled
            default: .tryAgain
            }
    }

    init(_ error: JobClientError) {
        self =
            switch error.code {
            case .unreachable, .closed: .unreachable
            case .denied: .forbidden
            case .cancelled, .slowReader: .tryAgain
            case .rpc where error.rpc?.kind == "line-too-long": .badData
            case .rpc:
                switch error.rpc.flatMap({ ProtocolError.Code(rawValue: $0.code) }) {
                case .notFound, .wrongState, .keyConflict, .invalidParams: .badData
                case .forbidden: .forbidden
                case .busy, .shuttingDown, .timeout, .storage: .tryAgain
                // Another version of the daemon, or a store without it.
                case .methodNotFound: .configuration
                case .parse, .invalidRequest, .internal, nil: .bug
                }
            default: .bug
            }
    }

    /// The status of several jobs: a failed job outweighs a cancelled one, and any other status outweighs both.
    static func worst(_ statuses: some Sequence<ExitStatus>) -> ExitStatus {
        func weight(_ status: ExitStatus) -> Int32 {
            switch status {
            case .jobCancelled: 1
            case .jobFailed: 2
            default: status.rawValue
            }
        }
        return statuses.max { weight($0) < weight($1) } ?? .ok
    }
}
