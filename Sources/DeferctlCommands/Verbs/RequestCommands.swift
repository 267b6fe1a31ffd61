import ArgumentParser
import JobClient
import JobModel

struct FetchCommand: DaemonCommand {
    static let configuration = verb(
        "fetch", "Fetch a URL and print the body.", example: "deferctl fetch --timeout 10 https://example.org/status",
        """
        The daemon fetches the URL, with retries; the body goes to standard output unchanged. On a terminal, control \
        characters in it are escaped.
        """)

    @OptionGroup(title: "Request options") var request: RequestOptions
    @OptionGroup(title: "Job options") var options: SpecOptions

    @Option(
        name: [.long, .customShort("o")],
        help: .value("file", "Write the body to this file, not to standard output."), completion: .file())
    var output: String?

    @OptionGroup var global: GlobalOptions
    @Argument(help: "What to fetch.") var url: String

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        if let output { try FileOutput.check(path: output) }
        let spec = options.spec(source: try await request.source(type: .url, url: url))
        return try await invocation.submit(spec, options) { job in
            if invocation.writesJSON, output == nil { return }
            try await invocation.write(job, to: output)
        }
    }
}

struct JSONCommand: DaemonCommand {
    static let configuration = verb(
        "json", "Fetch JSON and print it, or the value at a JSON pointer.",
        example: "deferctl json --raw https://example.org/releases/latest /assets/0/url")

    @OptionGroup(title: "Request options") var request: RequestOptions
    @OptionGroup(title: "Job options") var options: SpecOptions
    @Flag(name: [.long, .customShort("r")], help: "Print a string without quotes and escapes.") var raw = false
    @OptionGroup var global: GlobalOptions
    @Argument(help: "What to fetch.") var url: String

    @Argument(
        help: "The value to print, as a pointer of RFC 6901: /assets/0/url (default: the whole).",
        transform: { text in
            guard JSONPointer(text: text) != nil else {
                throw ValidationError("a JSON pointer begins with a slash: /assets/0/url.")
            }
            return text
        })
    var pointer: String?

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        var source = try await request.source(type: .json, url: url)
        source["select"] = pointer?.json
        return try await invocation.submit(options.spec(source: source), options) { job in
            if invocation.writesJSON { return }
            try invocation.write(job.result ?? .null, raw: raw)
        }
    }
}
