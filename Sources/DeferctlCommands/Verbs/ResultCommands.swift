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
            try invocation.write(job.result ?? .null, raw: raw)
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
                "Job \(job) is \(snapshot.state.sanitized) and has no result yet; wait with: deferctl wait \(job)")
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
    /// Writes the body of a result unchanged, or the JSON of a result without a body, to `file` or to standard output. With
    /// `raw`, a text is written without quotes.
    func write(_ job: JobSnapshot, raw: Bool = false, to path: String? = nil) async throws {
        let result = job.result ?? .null
        if let path {
            let file = try FileOutput(path: path)
            try await body(of: job) { bytes throws(CommandFailure) in try file.write(bytes) }
            try file.close()
        } else if raw, let text = result.string {
            if !text.isEmpty { try console.data.show(text + "\n") }
        } else if !job.hasBody {
            try write(result)
        } else if !console.showsData {
            try await body(of: job) { bytes throws(CommandFailure) in try console.data.write(bytes) }
        } else {
            var filter = TerminalFilter()
            var last = UInt8(ascii: "\n")
            try await body(of: job) { bytes throws(CommandFailure) in
                try console.data.write(filter.filter(bytes))
                last = bytes.last ?? last
            }
            if last != UInt8(ascii: "\n") { try console.lines([""]) }
        }
    }

    /// Writes a JSON value: with line breaks on a terminal, else on one line. A string can be written `raw`.
    func write(_ json: JSON, raw: Bool = false) throws(CommandFailure) {
        let text = raw ? json.string : nil
        try console.lines([console.showsData ? text?.sanitized ?? PrettyJSON.text(json) : text ?? json.description])
    }

    /// Passes the bytes of a result's body to `sink`; of a result without one, its JSON with a line feed.
    private func body(of job: JobSnapshot, to sink: ([UInt8]) throws(CommandFailure) -> Void) async throws {
        try await withDaemon { client in
            var offset = 0
            try await connection.keeping(client) { client in
                for try await piece in client.result(of: job.id, from: offset) {
                    try sink(piece.bytes)
                    offset += piece.bytes.count
                }
            }
        }
        if !job.hasBody { try sink([UInt8(ascii: "\n")]) }
    }
}

extension JobSnapshot {
    /// Whether the result is a response or a program's output, whose body may be too long for the job object.
    var hasBody: Bool {
        guard let result else { return resultSize != nil }
        guard result["size"] != nil, result["status"]?.int != nil || result["exit"]?.int != nil else { return false }
        return (result["body"] ?? result["output"])?.string != nil || result["spilled"]?.bool == true
    }
}
