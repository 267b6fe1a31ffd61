import ArgumentParser
import JobClient

/// Runs jobs again.
struct RetryCommand: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "retry",
        abstract: "Run failed or cancelled jobs again.",
        discussion: """
            Example: deferctl retry --from start 12
            """)

    @Option(
        name: .long,
        help: ArgumentHelp(
            "Where to take the job up: at the link that failed, or at the start.", valueName: "point"))
    var from = Start.failed

    @OptionGroup var global: GlobalOptions
    @OptionGroup var ids: JobIDs

    /// The points of `--from`.
    enum Start: String, ExpressibleByArgument, CaseIterable {
        case failed, start
    }

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        let start: JobClient.RetryStart = from == .start ? .start : .failed
        return try await JobAction(invocation: invocation).apply(to: ids.jobs) { client, job in
            let snapshot = try await client.retry(job, from: start)
            return (snapshot.state, snapshot.json)
        }
    }
}
