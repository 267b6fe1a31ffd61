import ArgumentParser
import JobClient

/// Cancels jobs.
struct CancelCommand: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "cancel",
        abstract: "Cancel jobs.",
        discussion: """
            A job that has links to run in any case (\"finally\") is over only after those, and one that runs a program only \
            after that has ended, at most five seconds later; wait for it with: deferctl wait

            Example: deferctl cancel 12 13
            """)

    @OptionGroup var global: GlobalOptions
    @OptionGroup var ids: JobIDs

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        try await JobAction(invocation: invocation).apply(to: ids.jobs) { client, job in
            let snapshot = try await client.cancel(job)
            return (snapshot.state, snapshot.json)
        }
    }
}
