import ArgumentParser
import JobClient
import JobModel

/// Submits jobs from a file of specs.
struct SubmitCommand: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "submit",
        abstract: "Submit jobs that are written as JSON, and print their ids.",
        discussion: """
            FILE holds one job spec, an array of them, or one spec a line. The ids are printed in that order; a \
            spec that the daemon refuses is told with its line, and those behind it are submitted all the same.

            Example: echo '{"source": {"type": "url", "url": "https://example.org/"}}' | deferctl submit --watch
            """)

    @Flag(name: .long, help: "Follow the jobs to their end, as the verb watch does.")
    var watch = false

    @OptionGroup var global: GlobalOptions

    @Argument(help: "The file; - is standard input.")
    var file = "-"

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        let (status, jobs) = try await invocation.withDaemon { client in
            var submission = BulkSubmission(
                client: client,
                accept: { try accept($0, invocation) },
                refuse: { invocation.console.say($0) })
            return try await submission.run(SpecDocuments(path: file))
        }
        guard watch, !jobs.isEmpty else { return status }
        return .worst([status, try await Watching(invocation: invocation).watch(jobs)])
    }

    private func accept(_ submission: JobClient.Submission, _ invocation: Invocation) throws {
        if invocation.writesJSON {
            try invocation.console.line(submission.json)
        } else {
            try invocation.console.line(String(submission.id))
        }
    }
}
