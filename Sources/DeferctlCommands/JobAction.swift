import JobClient
import JobModel

/// Does one thing to each of several jobs.
struct JobAction {
    let invocation: Invocation

    /// Applies `action` to each job and prints the result. Where one cannot be changed, it goes on with the others.
    func apply(to jobs: [Int64], _ action: (JobClient, Int64) async throws -> (text: String, json: JSON)) async throws
        -> ExitStatus
    {
        try await invocation.withDaemon { client in
            var statuses: [ExitStatus] = []
            for job in jobs {
                do {
                    let (text, json) = try await action(client, job)
                    if invocation.writesJSON {
                        try invocation.console.line(json)
                    } else {
                        try invocation.console.line("\(job) \(text.sanitized)")
                    }
                } catch let error as JobClientError where error.code == .rpc {
                    let failure = CommandFailure(error)
                    invocation.console.say(failure.message.sanitized)
                    statuses.append(failure.status)
                }
            }
            return .worst(statuses)
        }
    }
}
