import ArgumentParser
import JobClient
import JobModel

/// Prints a job's result.
struct ResultCommand: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "result", abstract: "Print a finished job's result: the body that was fetched, or else JSON.",
        discussion: """
            A body goes to standard output as it is; on a terminal control characters in it are spelt out. Of a result \
            that is a text, as what a program wrote, --raw prints just that. With --json the whole result is printed, \
            with its status and headers.

            Example: deferctl result 12 > page.html
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

/// Writes the results of jobs for the user.
struct ResultOutput: Sendable {
    let invocation: Invocation

    private var console: Console { invocation.console }

    /// Writes the body of a result as it is, or the JSON of one without a body, to `file` or else to standard output.
    func write(_ job: JobSnapshot, to file: String? = nil) async throws {
        let result = job.result ?? .null
        if let file {
            let file = try OutputFile(path: file)
            try await body(of: job) { bytes throws(CommandFailure) in try file.write(bytes) }
            try file.close()
        } else if !Self.hasBody(result), !Self.isLeftOut(job) {
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
            if last != UInt8(ascii: "\n") { try console.line("") }
        }
    }

    /// Writes a JSON value: on a terminal with line breaks, else on one line. A string can be written `raw`.
    func write(_ json: JSON, raw: Bool = false) throws(CommandFailure) {
        let text = raw ? json.string : nil
        try console.line(
            console.showsData ? text?.sanitized ?? PrettyJSON.text(json) : text ?? json.description)
    }

    /// Writes a text as it is, with a line feed; on a terminal control characters are spelt out.
    func write(text: String) throws(CommandFailure) {
        if !text.isEmpty { try console.data.show(text + "\n") }
    }

    /// Gives `sink` the bytes of a result's body; of a result without one, its JSON with a line feed.
    private func body(of job: JobSnapshot, to sink: ([UInt8]) throws(CommandFailure) -> Void) async throws {
        let result = job.result ?? .null
        guard Self.hasBody(result) || Self.isLeftOut(job) else {
            return try sink(result.utf8 + [UInt8(ascii: "\n")])
        }
        if let body = Self.inlineBody(of: result) { return try sink(body) }
        try await invocation.withDaemon { client in
            var offset = 0
            try await invocation.connection.keeping(client) { client in
                for try await piece in client.result(of: job.id, from: offset) {
                    try sink(piece.bytes)
                    offset += piece.bytes.count
                }
            }
        }
    }

    /// Whether this is the job of a `url` source with a response that is too long to be shown in it.
    static func isLeftOut(_ job: JobSnapshot) -> Bool { job.result == nil && job.resultSize != nil }

    /// Whether this is the result of a `url` source.
    static func hasBody(_ result: JSON) -> Bool {
        result["status"]?.int != nil && result["size"] != nil
            && (result["body"]?.string != nil || result["spilled"]?.bool == true)
    }

    /// The body that is part of the result itself.
    static func inlineBody(of result: JSON) -> [UInt8]? {
        guard result["spilled"]?.bool != true, let body = result["body"]?.string else { return nil }
        return result["encoding"]?.string == "base64" ? Base64.decode(body) : Array(body.utf8)
    }
}
