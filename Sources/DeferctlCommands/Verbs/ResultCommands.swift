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
        help: .value("file", "Write the body to this file, not to standard output, which is -."), completion: .file())
    var output: String?

    @OptionGroup var global: GlobalOptions
    @Argument(help: "What to fetch.") var url: String

    func validate() throws {
        if output != nil, options.detach {
            throw ValidationError("--output needs the end of the job; without it, use: deferctl result ID > FILE")
        }
    }

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        let output = output == "-" ? nil : output
        if let output { try FileOutput.check(path: output) }
        let spec = options.spec(source: try await request.source(type: .url, url: url))
        return try await invocation.submit(options, making: { _ in spec }) { job in
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
        let spec = options.spec(source: source)
        return try await invocation.submit(options, making: { _ in spec }) { job in
            if invocation.writesJSON { return }
            try invocation.write(job.result ?? .null, raw: raw, to: invocation.console.data)
        }
    }
}

struct ResultCommand: DaemonCommand {
    static let configuration = verb(
        "result", "Print the result of a finished job: the body that was fetched, a program's output, or else JSON.",
        example: "deferctl result 12 > page.html",
        """
        A body goes to standard output unchanged; on a terminal, control characters in it are escaped. With --raw, \
        a result that is a text is printed without quotes. With --json, the whole result is printed, with its status \
        and headers.
        """)

    @Flag(help: "Print a text without quotes and escapes.") var raw = false
    @OptionGroup var global: GlobalOptions
    @Argument(help: .value("id", "The job's id."), completion: LiveCompletion.jobs) var job: Int64

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        let snapshot = try await invocation.withDaemon { try await $0.get(job) }
        guard snapshot.isFinished else {
            throw CommandFailure(
                .tryAgain,
                "Job \(job) is \(snapshot.state.sanitized) and has no result yet; wait with: "
                    + "\(invocation.socket.command) wait \(job)")
        }
        if invocation.writesJSON {
            let value = snapshot.isSucceeded ? snapshot.result ?? .null : snapshot.error
            if let value { try invocation.console.line(value) }
        } else if snapshot.isSucceeded {
            try await invocation.write(snapshot, raw: raw)
        }
        return invocation.report(snapshot)
    }
}

extension Invocation {
    /// Writes the body of a result unchanged, or the JSON of a result without a body, to a file or to standard output. With
    /// `raw`, a text is written without quotes.
    func write(_ job: JobSnapshot, raw: Bool = false, to path: String? = nil) async throws {
        let file = if let path { try FileOutput(path: path) } else { console.data }
        if job.hasBody {
            try await writeBody(of: job, to: file)
        } else {
            try write(job.result ?? .null, raw: raw, to: file)
        }
        if path != nil { try file.close() }
    }

    /// Writes a JSON value: with line breaks on a terminal, else on one line. A string can be written `raw`.
    func write(_ json: JSON, raw: Bool, to file: FileOutput) throws(CommandFailure) {
        if raw, let text = json.string { return try file.show(text + "\n") }
        try file.write((file.isTerminal ? PrettyJSON.text(json) : json.description) + "\n")
    }

    private func writeBody(of job: JobSnapshot, to file: FileOutput) async throws {
        let isTerminal = file.isTerminal
        var (filter, last, offset) = (TerminalFilter(), UInt8(ascii: "\n"), 0)
        try await withDaemon { client in
            try await connection.keeping(client) { client in
                for try await piece in client.result(of: job.id, from: offset) {
                    try file.write(isTerminal ? filter.filter(piece.bytes) : piece.bytes)
                    offset += piece.bytes.count
                    last = piece.bytes.last ?? last
                }
            }
        }
        // The shell's prompt follows on a line of its own.
        if isTerminal, last != UInt8(ascii: "\n") { try file.write("\n") }
    }
}

extension JobSnapshot {
    /// Whether the result is a response or a program's output, whose body may be too long for the job object.
    var hasBody: Bool {
        guard let result else { return resultSize != nil }
        guard result["notModified"] != nil || result["sha256"] != nil || result["exit"] != nil else { return false }
        return (result["body"] ?? result["output"])?.string != nil || result["spilled"]?.bool == true
    }
}
