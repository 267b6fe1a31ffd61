import ArgumentParser
import JobClient
import JobModel

/// Prints a job's result.
struct ResultCommand: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "result",
        abstract: "Print a finished job's result: the body that was fetched, or else JSON.",
        discussion: """
            A body goes to standard output as it is; on a terminal control characters in it are spelt out. Of a result \
            that is a text, as what a program wrote, --raw prints just that. With --json the whole result is printed, \
            with its status and headers.

            Example: deferctl result 12 > page.html
            """)

    @Flag(name: .long, help: "Print a text without quotes and escapes.")
    var raw = false

    @OptionGroup var global: GlobalOptions

    @Argument(help: ArgumentHelp("The job's id.", valueName: "id"), completion: LiveCompletion.jobs)
    var job: Int64

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        let snapshot = try await invocation.withDaemon { try await $0.get(job) }
        guard snapshot.isFinished else {
            throw CommandFailure(
                .tryAgain,
                "Job \(job) is \(snapshot.state.sanitized) and has no result yet; wait with: deferctl wait \(job)")
        }
        if snapshot.isSucceeded {
            if invocation.writesJSON {
                try invocation.console.line(snapshot.result ?? .null)
            } else if raw, let text = snapshot.result?.string {
                try ResultOutput(invocation: invocation).write(text: text)
            } else {
                try await ResultOutput(invocation: invocation).write(snapshot)
            }
        } else if invocation.writesJSON, let error = snapshot.error {
            try invocation.console.line(error)
        }
        return invocation.report(snapshot)
    }
}
