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
