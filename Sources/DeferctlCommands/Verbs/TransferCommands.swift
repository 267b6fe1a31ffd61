import ArgumentParser
import JobClient
import JobModel

/// Downloads a URL to a file of the daemon's.
struct DownloadCommand: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "download", abstract: "Download a URL to a file.",
        discussion: """
            PATH means your directory among the daemon's downloads, never the directory you are in, unless it is absolute; \
            without one the file is called as the last part of the URL. The path that was written is printed. \
            A download that breaks off is taken up where it stopped, also after a restart of the daemon.

            Example: deferctl download --exists replace https://example.org/tool.tar.gz tools/tool.tar.gz
            """)

    @Option(
        help: .value(
            "choice", "What to do when the file is there; validate downloads only what changed (default: fail)."))
    var exists: Exists?

    @Option(help: .value("digest", "What the file's SHA-256 must be: sha256:HEX, or the 64 digits."))
    var checksum: Digest?

    @Option(
        parsing: .singleValue,
        help: .value("url", "Another URL of the same file, tried when those before it fail; may be given again."))
    var mirror: [String] = []

    @Option(help: .value("bytes", "The most bytes a second; k, M and G stand for thousands, millions and so on."))
    var rate: ByteRate?

    @Option(
        help: .value(
            "count",
            "Connections to fetch it with at once, 1 to 16, where the server can give parts of a file (default: 1)."))
    var segments: Int?

    @OptionGroup(title: "Request options") var fields: HeaderOptions
    @OptionGroup(title: "Job options") var options: SpecOptions
    @OptionGroup var following: FollowOptions
    @OptionGroup var global: GlobalOptions
    @Argument(help: "What to download.") var url: String

    @Argument(help: "Where to: a path in your directory of the daemon's downloads, or an absolute one.")
    var path: String?

    func validate() throws {
        if let segments, !(1...16).contains(segments) {
            throw ValidationError("--segments must be 1 to 16.")
        }
        if path == nil, Self.name(in: url) == nil {
            throw ValidationError("The URL has no last part to name the file by; give a PATH.")
        }
    }

    /// The spec's source.
    var source: JSONObject {
        [
            "type": SourceType.download.rawValue.json, "url": url.json, "path": (path ?? Self.name(in: url))?.json,
            "headers": fields.headers, "exists": exists?.rawValue.json, "checksum": checksum?.json,
            "mirrors": mirror.isEmpty ? JSON?.none : mirror.json, "rate": rate?.bytes.json, "segments": segments?.json,
        ]
    }

    /// The name of a file that `url` ends with, or nil where it ends with none.
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
        let spec = options.spec(source: source)
        return try await Submitting(invocation: invocation, options: following).run(spec) { job in
            if !invocation.writesJSON, let path = job.result?["path"]?.string {
                try invocation.console.line(invocation.console.showsData ? path.sanitized : path)
            }
            if !following.quiet, let text = Self.summary(of: job) { invocation.console.say(text) }
        }
    }

    /// What was transferred, and how long it took.
    static func summary(of job: JobSnapshot) -> String? {
        guard let result = job.result, let size = result["size"]?.int else { return nil }
        let text = Quantities.size(Int64(size))
        // It was skipped, or the server said that it has not changed.
        if result["status"]?.int == nil || result["status"]?.int == 304 {
            return "The file is there already (\(text)); nothing was transferred."
        }
        return JobText(job, now: .now).runtime.map { "\(text) in \(Quantities.span($0))" }
    }

    /// The choices of `--exists`.
    enum Exists: String, ExpressibleByArgument, CaseIterable {
        case fail, replace, rename, skip, validate
    }
}

/// A digest as the command line writes it, for SHA-256 without its name, too.
struct Digest: ExpressibleByArgument {
    let json: JSON

    init(argument: String) { json = .string(argument.contains(":") ? argument : "sha256:\(argument)") }
}

/// Bytes a second as the command line writes them: `500000`, `500k`, `2M`.
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

/// Uploads a file of the daemon's to a URL.
struct UploadCommand: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "upload", abstract: "Upload a file to a URL.",
        discussion: """
            PATH means your directory among the daemon's downloads, never the directory you are in, unless it is absolute; \
            then it must lie below one of the daemon's downloads.roots. \
            The file is sent from its beginning in each attempt; one that changes meanwhile is sent again. \
            POST and PATCH are tried again only with --retries. How much was sent and how it was answered is told on \
            standard error.

            Example: deferctl upload tools/tool.tar.gz https://example.org/store/tool.tar.gz
            """)

    @Option(help: .value("word", "PUT, POST or PATCH (default: PUT).")) var method: Method?

    @Option(help: .value("digest", "What the file's SHA-256 must be: sha256:HEX, or the 64 digits."))
    var checksum: Digest?

    @OptionGroup(title: "Request options") var fields: HeaderOptions
    @OptionGroup(title: "Job options") var options: SpecOptions
    @OptionGroup var following: FollowOptions
    @OptionGroup var global: GlobalOptions

    @Argument(help: "The file: a path in your directory of the daemon's downloads, or an absolute one.")
    var path: String

    @Argument(help: "Where to.") var url: String

    /// The spec's source.
    var source: JSONObject {
        [
            "type": SourceType.upload.rawValue.json, "url": url.json, "path": path.json,
            "method": method?.rawValue.json, "headers": fields.headers, "checksum": checksum?.json,
        ]
    }

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        let spec = options.spec(source: source)
        return try await Submitting(invocation: invocation, options: following).run(spec) { job in
            guard !following.quiet, let size = job.result?["size"]?.int else { return }
            let status = job.result?["status"]?.int.map { ", answered with \($0)" } ?? ""
            let span = JobText(job, now: .now).runtime.map { " in " + Quantities.span($0) } ?? ""
            invocation.console.say("\(Quantities.size(Int64(size)))\(span)\(status)")
        }
    }

    /// The choices of `--method`.
    enum Method: String, ExpressibleByArgument, CaseIterable {
        case put = "PUT"
        case post = "POST"
        case patch = "PATCH"

        init?(argument: String) { self.init(rawValue: argument.uppercased()) }
    }
}
