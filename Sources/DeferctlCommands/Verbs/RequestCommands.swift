import ArgumentParser
import JobClient
import JobModel

/// Fetches a URL and prints the body.
struct FetchCommand: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "fetch", abstract: "Fetch a URL and print the body.",
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
        help: .value("file", "Write the body to this file of yours, not to standard output."), completion: .file())
    var output: String?

    @OptionGroup var global: GlobalOptions
    @Argument(help: "What to fetch.") var url: String

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        if let output { try OutputFile.check(path: output) }
        let spec = options.spec(source: try await request.source(type: .url, url: url))
        return try await Submitting(invocation: invocation, options: following).run(spec) { job in
            if invocation.writesJSON, output == nil { return }
            try await ResultOutput(invocation: invocation).write(job, to: output)
        }
    }
}

/// Fetches JSON and prints it, or one value of it.
struct JSONCommand: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "json", abstract: "Fetch JSON and print it, or the value at a JSON pointer.",
        discussion: "Example: deferctl json --raw https://example.org/releases/latest /assets/0/url")

    @OptionGroup(title: "Request options") var request: RequestOptions
    @OptionGroup(title: "Job options") var options: SpecOptions
    @OptionGroup var following: FollowOptions
    @Flag(name: [.long, .customShort("r")], help: "Print a string without its quotes and escapes.") var raw = false
    @OptionGroup var global: GlobalOptions
    @Argument(help: "What to fetch.") var url: String

    @Argument(help: "Which value to print, as RFC 6901 writes it: /assets/0/url (default: the whole).")
    var pointer: String?

    func validate() throws {
        if let pointer, JSONPointer(text: pointer) == nil {
            throw ValidationError("\"\(pointer)\" is no JSON pointer; it begins with a slash: /assets/0/url.")
        }
    }

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        var source = try await request.source(type: .json, url: url)
        source["select"] = pointer?.json
        let spec = options.spec(source: source)
        return try await Submitting(invocation: invocation, options: following).run(spec) { job in
            if invocation.writesJSON { return }
            try ResultOutput(invocation: invocation).write(job.result ?? .null, raw: raw)
        }
    }
}
