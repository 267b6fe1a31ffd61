import ArgumentParser
import JobClient
import JobModel

/// Removes finished jobs.
struct RemoveCommand: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove",
        abstract: "Remove finished jobs with their results and children; downloaded files stay.",
        discussion: """
            Example: deferctl remove 12 13
            """)

    @OptionGroup var global: GlobalOptions
    @OptionGroup var ids: JobIDs

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        try await JobAction(invocation: invocation).apply(to: ids.jobs) { client, job in
            try await client.remove(job)
            return ("removed", ["job": JSON(Int(job)), "removed": true])
        }
    }
}
