import ArgumentParser
import JobClient
import JobModel

struct DownloadCommand: DaemonCommand {
    static let configuration = verb(
        "download", "Download a URL to a file.",
        example: "deferctl download --exists replace https://example.org/tool.tar.gz tools/tool.tar.gz",
        """
        A relative PATH is relative to your directory among the daemon's downloads, never to the current directory. \
        Without a PATH, the file is named after the last part of the URL. The path of the file is printed. An \
        interrupted download resumes where it stopped, even after the daemon restarts.
        """)

    @Option(help: .value("choice", "If the file exists; validate downloads only what changed (default: fail)."))
    var exists: Exists?

    @Option(
        help: .value("digest", "The required SHA-256 of the file: sha256:HEX, or the 64 digits."), transform: digest)
    var checksum: JSON?

    @Option(
        parsing: .singleValue,
        help: .value("url", "Another URL of the same file, tried after those before it fail; may be repeated."))
    var mirror: [String] = []

    @Option(help: .value("bytes", "The maximum number of bytes per second; k, M and G are powers of 1000."))
    var rate: ByteRate?

    @Option(
        help: .value("count", "Parallel connections, 1 to 16, if the server can send parts of a file (default: 1)."),
        transform: whole(1...16))
    var segments: Int?

    @OptionGroup(title: "Request options") var fields: HeaderOptions
    @OptionGroup(title: "Job options") var options: SpecOptions
    @OptionGroup var global: GlobalOptions
    @Argument(help: "What to download.") var url: String

    @Argument(help: "Where to: a path in your directory of the daemon's downloads, or an absolute path.")
    var path: String?

    enum Exists: String, ExpressibleByArgument, CaseIterable {
        case fail, replace, rename, skip, validate
    }

    func validate() throws {
        if path == nil, Self.name(in: url) == nil {
            throw ValidationError("The URL has no last part to name the file after; give a PATH.")
        }
    }

    var source: JSONObject {
        [
            "type": SourceType.download.rawValue.json, "url": url.json, "path": (path ?? Self.name(in: url))?.json,
            "headers": fields.headers, "exists": exists?.rawValue.json, "checksum": checksum,
            "mirrors": mirror.isEmpty ? JSON?.none : mirror.json, "rate": rate?.bytes.json, "segments": segments?.json,
        ]
    }

    /// The file name at the end of `url`.
    static func name(in url: String) -> String? {
        var rest = url.prefix { $0 != "?" && $0 != "#" }
        if let scheme = rest.utf8.firstIndex(of: UInt8(ascii: ":")), rest[scheme...].hasPrefix("://") {
            rest = rest[scheme...].dropFirst(3)
        }
        guard let slash = rest.lastIndex(of: "/") else { return nil }
        let part = String(rest[rest.index(after: slash)...])
        let decoded = PercentEncoding.decoded(part) ?? part
        let name = decoded.contains("/") || decoded.unicodeScalars.contains("\0") ? part : decoded
        return ["", ".", ".."].contains(name) ? nil : name
    }

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        let console = invocation.console
        return try await invocation.submit(options.spec(source: source), options) { job in
            if !invocation.writesJSON, let path = job.result?["path"]?.string {
                try console.lines([console.showsData ? path.sanitized : path])
            }
            if !options.quiet, let text = Self.summary(of: job) { console.say(text) }
        }
    }

    static func summary(of job: JobSnapshot) -> String? {
        guard let result = job.result, let size = result["size"]?.int else { return nil }
        let text = Quantities.size(size)
        // It was skipped, or the server said that it has not changed.
        if result["status"]?.int == nil || result["status"]?.int == 304 {
            return "The file already exists (\(text)); nothing was transferred."
        }
        return JobText(job, now: .now).runtime.map { "\(text) in \(Quantities.span($0))" }
    }
}

/// Reads a digest; SHA-256 may be written without its name.
@Sendable private func digest(_ text: String) -> JSON { .string(text.contains(":") ? text : "sha256:\(text)") }

/// Bytes per second: `500000`, `500k`, `2M`.
struct ByteRate: ExpressibleByArgument, Equatable {
    let bytes: Int

    init?(argument: String) {
        let units: [Character: Double] = ["k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9]
        let factor = argument.last.flatMap { units[$0] }
        guard let number = Double(factor == nil ? argument : String(argument.dropLast())) else { return nil }
        let bytes = (number * (factor ?? 1)).rounded()
        guard bytes >= 1, bytes <= 1e15 else { return nil }
        self.bytes = Int(bytes)
    }
}

struct UploadCommand: DaemonCommand {
    static let configuration = verb(
        "upload", "Upload a file to a URL.",
        example: "deferctl upload tools/tool.tar.gz https://example.org/store/tool.tar.gz",
        """
        A relative PATH is relative to your directory among the daemon's downloads, never to the current directory; an \
        absolute one must lie below one of the daemon's downloads.roots. Each attempt sends the file from the \
        beginning; a file that changes during the upload is sent again. POST and PATCH are retried only with \
        --retries. The number of bytes and the server's answer are reported on standard error.
        """)

    @Option(help: .value("word", "PUT, POST or PATCH (default: PUT).")) var method: Method?

    @Option(
        help: .value("digest", "The required SHA-256 of the file: sha256:HEX, or the 64 digits."), transform: digest)
    var checksum: JSON?

    @OptionGroup(title: "Request options") var fields: HeaderOptions
    @OptionGroup(title: "Job options") var options: SpecOptions
    @OptionGroup var global: GlobalOptions

    @Argument(help: "The file: a path in your directory of the daemon's downloads, or an absolute path.")
    var path: String

    @Argument(help: "Where to.") var url: String

    enum Method: String, ExpressibleByArgument, CaseIterable {
        case put = "PUT"
        case post = "POST"
        case patch = "PATCH"

        init?(argument: String) { self.init(rawValue: argument.uppercased()) }
    }

    var source: JSONObject {
        [
            "type": SourceType.upload.rawValue.json, "url": url.json, "path": path.json,
            "method": method?.rawValue.json, "headers": fields.headers, "checksum": checksum,
        ]
    }

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        try await invocation.submit(options.spec(source: source), options) { job in
            guard !options.quiet, let size = job.result?["size"]?.int else { return }
            let status = job.result?["status"]?.int.map { ", answered with \($0)" } ?? ""
            let span = JobText(job, now: .now).runtime.map { " in " + Quantities.span($0) } ?? ""
            invocation.console.say("\(Quantities.size(size))\(span)\(status)")
        }
    }
}
