/// The result of a run with failing file operations.
struct FaultReport: CustomStringConvertible {
    var rounds = 0
    var jobs = 0
    /// Jobs that failed with kind `storage`, retried ones counted again.
    var failed = 0
    /// Failed calls by operation.
    var faults: [String: Int] = [:]
    var problems: [String] = []

    var isClean: Bool {
        problems.isEmpty && jobs > 0 && failed > 0
            && ["open", "write", "fsync", "rename"].allSatisfy { faults[$0] != nil }
    }

    var description: String {
        let faults = faults.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(separator: ", ")
        let head =
            "faults: rounds = \(rounds), jobs = \(jobs), failed and retried = \(failed), injected: \(faults); "
            + "problems = \(problems.count)"
        return ([head] + problems.prefix(20).map { "  \($0)" }).joined(separator: "\n")
    }
}
