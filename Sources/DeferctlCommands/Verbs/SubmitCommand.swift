import ArgumentParser
import Glibc
import JobClient
import JobModel

/// Submits jobs whose specs stand in a file or in the argument itself.
struct SubmitCommand: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "submit", abstract: "Submit jobs that are written as JSON, and print their ids.",
        discussion: """
            FILE holds one job spec, an array of them, or one spec a line. The ids are printed in that order; a \
            spec that the daemon refuses is told with its line, and those behind it are submitted all the same.

            An argument that begins with { is no file but the spec itself.

            Example: deferctl submit --watch '{"source": {"type": "url", "url": "https://example.org/"}}'
            """)

    @Flag(help: "Follow the jobs to their end, as the verb watch does.") var watch = false
    @OptionGroup var global: GlobalOptions

    @Argument(help: .value("file", "The file, or a spec itself; - is standard input."), completion: .file())
    var specs = "-"

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        if specs == "-", isatty(STDIN_FILENO) == 1 {
            invocation.console.say("Reading specs from the terminal, one a line, to Ctrl-D; see deferctl help submit.")
        }
        let (status, jobs) = try await invocation.withDaemon { client in
            var submission = BulkSubmission(
                client: client,
                accept: { try invocation.show($0.json, as: String($0.id)) },
                refuse: { invocation.console.say($0) })
            return try await submission.run(SpecDocuments(argument: specs))
        }
        guard watch, !jobs.isEmpty else { return status }
        return .worst([status, try await Watching(invocation: invocation).watch(jobs)])
    }

}
