import ArgumentParser
import JobClient
import JobModel

extension Invocation {
    /// Changes each of several jobs, and prints its new state, or `word` if the job is gone. If a job cannot be changed, the
    /// others still are.
    fileprivate func change(
        _ jobs: JobIDs, word: String = "", _ action: (JobClient, Int64) async throws -> JobSnapshot?
    ) async throws -> ExitStatus {
        try await withDaemon { client in
            var statuses: [ExitStatus] = []
            for job in jobs.jobs {
                do {
                    let changed = try await action(client, job)
                    try show(
                        changed?.json ?? ["job": job.json, word: true], as: "\(job) \(changed?.state.sanitized ?? word)"
                    )
                } catch let error as JobClientError where error.code == .rpc {
                    let failure = CommandFailure(error)
                    console.say(failure.message.sanitized)
                    statuses.append(failure.status)
                }
            }
            return .worst(statuses)
        }
    }
}

struct CancelCommand: DaemonCommand {
    static let configuration = verb(
        "cancel", "Cancel jobs.", example: "deferctl cancel 12 13",
        """
        A job with \"finally\" links ends after those links, and a job that runs a program ends after the program, \
        at most five seconds later; wait for it with: deferctl wait
        """)

    @OptionGroup var global: GlobalOptions
    @OptionGroup var ids: JobIDs

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        try await invocation.change(ids) { try await $0.cancel($1) }
    }
}

struct RetryCommand: DaemonCommand {
    static let configuration = verb(
        "retry", "Run failed or cancelled jobs again.", example: "deferctl retry --from start 12")

    enum Start: String, ExpressibleByArgument, CaseIterable { case failed, start }

    @Option(help: .value("point", "Where to continue: at the link that failed, or at the start."))
    var from = Start.failed
    @OptionGroup var global: GlobalOptions
    @OptionGroup var ids: JobIDs

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        try await invocation.change(ids) { try await $0.retry($1, from: from == .start ? .start : .failed) }
    }
}

struct RemoveCommand: DaemonCommand {
    static let configuration = verb(
        "remove", "Remove finished jobs with their results and children; downloaded files stay.",
        example: "deferctl remove 12 13")

    @OptionGroup var global: GlobalOptions
    @OptionGroup var ids: JobIDs

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        try await invocation.change(ids, word: "removed") { client, job in
            try await client.remove(job)
            return nil
        }
    }
}
