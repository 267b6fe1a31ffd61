import ArgumentParser
import JobClient
import JobModel

/// Waits until jobs are finished.
struct WaitCommand: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "wait", abstract: "Wait until jobs are finished, and print how each ended.",
        discussion: """
            The exit status is that of the worst: 65 if there is no such job, else 1 if one failed, else 2 if one was \
            cancelled, else 0.

            Example: deferctl submit jobs.jsonl | xargs deferctl wait --timeout 600
            """)

    @Option(help: .value("seconds", "Seconds to wait at most; after that the exit status is 75.")) var timeout: Double?
    @OptionGroup var global: GlobalOptions
    @OptionGroup var ids: JobIDs

    func validate() throws {
        if let timeout, !timeout.isFinite || timeout < 0 {
            throw ValidationError("--timeout must be a number of seconds.")
        }
    }

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        let interruption = Interruption(from: "wait", jobs: ids.jobs)
        let (jobs, timeout) = (ids.jobs, timeout)
        let (ended, missing) = try await interruption.run {
            let deadline = timeout.map { ContinuousClock.now + .seconds($0) }
            return try await invocation.withDaemon { client in
                try await invocation.connection.keeping(client, jobs) { client, present in
                    let rest = deadline.map { max(0, (ContinuousClock.now.duration(to: $0)) / .seconds(1)) }
                    return try await client.wait(present, timeout: rest)
                }
            }
        }
        let finished = ended ?? []
        try invocation.show(finished.map(\.json), as: finished.map { "\($0.id) \($0.state.sanitized)" })
        return .worst(missing + finished.map(invocation.report))
    }
}
