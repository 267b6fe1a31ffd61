import ArgumentParser
import JobClient
import JobModel

/// Fetches a URL and prints the body.
struct FetchCommand: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "fetch",
        abstract: "Fetch a URL and print the body.",
        discussion: """
            The daemon fetches the URL, with retries; the body goes to standard output as it is. On a terminal control \
            characters in it are spelt out.

            Example: deferctl fetch --timeout 10 https://example.org/status
            """)

    @OptionGroup(title: "Request options") var request: RequestOptions
    @OptionGroup(title: "Job options") var options: SpecOptions
    @OptionGroup var following: FollowOptions

    @Option(
        name: [.long, .customShort("o")],
        help: ArgumentHelp("Write the body to this file of yours, not to standard output.", valueName: "file"),
        completion: .file())
    var output: String?

    @OptionGroup var global: GlobalOptions

    @Argument(help: "What to fetch.")
    var url: String

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        if let output { try OutputFile.check(path: output) }
        let spec = options.spec(source: try await request.source(type: .url, url: url))
        return try await Submitting(invocation: invocation, options: following).run(spec) { job in
            if invocation.writesJSON, output == nil { return }
            try await ResultOutput(invocation: invocation).write(job, to: output)
        }
    }
}
