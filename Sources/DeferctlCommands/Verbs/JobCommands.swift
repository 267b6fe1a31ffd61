import ArgumentParser
import JobClient
import JobModel

extension Invocation {
    /// Does one thing to each of several jobs, and prints the job that comes of it, or `word` where none does. Where one cannot
    /// be changed, it goes on with the others.
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

/// Cancels jobs.
struct CancelCommand: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "cancel", abstract: "Cancel jobs.",
        discussion: """
            A job that has links to run in any case (\"finally\") is over only after those, and one that runs a program only \
            after that has ended, at most five seconds later; wait for it with: deferctl wait

            Example: deferctl cancel 12 13
            """)

    @OptionGroup var global: GlobalOptions
    @OptionGroup var ids: JobIDs

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        try await invocation.change(ids) { try await $0.cancel($1) }
    }
}

/// Runs jobs again.
struct RetryCommand: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "retry", abstract: "Run failed or cancelled jobs again.",
        discussion: "Example: deferctl retry --from start 12")

    @Option(help: .value("point", "Where to take the job up: at the link that failed, or at the start."))
    var from = Start.failed
    @OptionGroup var global: GlobalOptions
    @OptionGroup var ids: JobIDs

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        try await invocation.change(ids) { try await $0.retry($1, from: from == .start ? .start : .failed) }
    }

    /// The points of `--from`.
    enum Start: String, ExpressibleByArgument, CaseIterable { case failed, start }
}

/// Removes finished jobs.
struct RemoveCommand: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove", abstract: "Remove finished jobs with their results and children; downloaded files stay.",
        discussion: "Example: deferctl remove 12 13")

    @OptionGroup var global: GlobalOptions
    @OptionGroup var ids: JobIDs

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        try await invocation.change(ids, word: "removed") { client, job in
            try await client.remove(job)
            return nil
        }
    }
}
