/// The result of a run of kills.
struct CrashReport: CustomStringConvertible {
    var rounds = 0
    /// Submissions that were answered.
    var acknowledged = 0
    /// Of these, jobs that are there afterwards, once, with their one terminal state and the right result.
    var recovered = 0
    /// Stored jobs whose submission was never answered; these are allowed.
    var unanswered = 0
    var downloads = 0
    /// Jobs that failed because they ran in three consecutive kills, and were retried.
    var interrupted = 0
    var problems: [String] = []

    var lost: Int { acknowledged - recovered }
    var isClean: Bool { lost == 0 && problems.isEmpty && acknowledged > 0 }

    var description: String {
        let head =
            "crash: rounds = \(rounds), acknowledged = \(acknowledged), recovered = \(recovered), lost = \(lost), "
            + "unanswered but stored = \(unanswered), downloads = \(downloads), problems = \(problems.count)"
        return ([head] + problems.prefix(20).map { "  \($0)" }).joined(separator: "\n")
    }
}
