import ArgumentParser
import Glibc
import JobClient
import JobModel

struct DownloadCommand: DaemonCommand {
    static let configuration = verb(
        "download", "Download URLs to files.",
        example: "deferctl download --to tools/ https://example.org/tool.tar.gz https://example.org/other.tar.gz",
        """
        Without --to, a file goes into the current directory, and the server names it; of several URLs, each file is \
        named after the last part of its URL. In a daemon of your own, --to is a path as in any other program; the \
        system's daemon takes it relative to your directory among its downloads. The paths of the files are printed. An interrupted download resumes where it \
        stopped, even after the daemon restarts.

        Each line of a list is a URL, with spaces before a name for the file, a digest as for --checksum, or further \
        URLs of the same file; blank lines and lines that begin with # are skipped. With --exists skip, a second run \
        downloads only what is missing.
        """)

    @Option(
        help: .value("path", "Where to; a directory if it ends in /, or if there are several URLs."),
        completion: .file())
    var to: String?

    @Option(
        name: [.customLong("input-file"), .customShort("i")],
        help: .value("file", "Download the URLs in this list, one per line; - is standard input."), completion: .file())
    var list: String?

    @Option(help: .value("choice", "If the file exists; validate downloads only what changed (default: fail)."))
    var exists: DownloadSpec.Exists?

    @Option(
        help: .value("digest", "The required digest of the file, such as sha256:HEX, or the 64 digits of SHA-256."),
        transform: digest)
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
    @Argument(help: .value("url", "What to download.")) var urls: [String] = []

    func validate() throws {
        guard urls.isEmpty != (list == nil) else {
            throw ValidationError("Name the URLs to download, or a list of them with --input-file.")
        }
        if let word = urls.first(where: { !DownloadEntry.isURL($0) }) {
            throw ValidationError(
                word == urls[0]
                    ? "\"\(word)\" is not a URL; write one as https://host/path."
                    : "\"\(word)\" is not a URL; to save under that name, use --to \(word).")
        }
        guard let url = urls.first, urls.count == 1 else {
            if checksum != nil || !mirror.isEmpty || options.key != nil {
                throw ValidationError("--checksum, --mirror and --key are for one URL.")
            }
            return
        }
        if !mayBeNamedByServer, to?.hasSuffix("/") != false, DownloadEntry.name(in: url) == nil {
            throw ValidationError("The URL has no last part to name the file after; name a file with --to.")
        }
    }

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        guard urls.count == 1, let url = urls.first else { return try await performAll(invocation) }
        let console = invocation.console
        return try await invocation.submit(
            options,
            making: { client throws(CommandFailure) in
                let isOwn = try await Surroundings.takesPaths(client)
                return options.spec(source: try source(DownloadEntry(url: url), isOwn: isOwn))
            }
        ) { job in
            let path = job.result?["path"]?.string ?? ""
            if !invocation.writesJSON { try console.lines([console.showsData ? path.sanitized : path]) }
            guard !options.quiet else { return }
            if let text = Self.summary(of: job) { console.say(text) }
            if case let to = to ?? "./", !to.hasPrefix("/"), !to.hasPrefix("~/"),
                let local = try? Surroundings.path(to, isOwn: true), let slash = local.lastIndex(of: "/"),
                !path.hasPrefix(local[...slash])
            {
                console.say("The file is in your directory among the daemon's downloads, not in the current directory.")
            }
        }
    }

    /// The source of a download; `isOwn` tells that the daemon belongs to the caller.
    func source(_ entry: DownloadEntry, isOwn: Bool) throws(CommandFailure) -> JSONObject {
        let whole = to != nil || isOwn ? try Surroundings.path(to ?? ".", isOwn: isOwn) : ""
        let isDirectory = isMany || to?.hasSuffix("/") ?? true || isOwn && isFile(whole, S_IFDIR)
        var path = whole
        if isDirectory {
            let byURL = isMany || !mayBeNamedByServer ? DownloadEntry.name(in: entry.url) : nil
            guard let name = entry.name ?? byURL ?? (mayBeNamedByServer ? "" : nil) else {
                throw CommandFailure(
                    .badData, "The URL has no last part to name the file after; write a name behind it.")
            }
            let directory = whole.hasSuffix("/") ? String(whole.dropLast()) : whole
            path = whole.isEmpty ? (name.isEmpty ? "./" : name) : "\(directory)/\(name)"
        }
        let mirrors = mirror + entry.mirrors
        return [
            "type": SourceType.download.rawValue.json, "url": entry.url.json, "path": path.json,
            "headers": fields.headers, "exists": exists?.rawValue.json, "checksum": entry.checksum ?? checksum,
            "mirrors": mirrors.isEmpty ? JSON?.none : mirrors.json, "rate": rate?.bytes.json,
            "segments": segments?.json,
        ]
    }

    /// Whether the server may name a file: only new ones.
    private var mayBeNamedByServer: Bool { exists != .replace && exists != .validate }

    private var isMany: Bool { list != nil || urls.count > 1 }

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
@Sendable func digest(_ text: String) -> JSON { .string(text.contains(":") ? text : "sha256:\(text)") }

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
        In a daemon of your own, PATH is a path as in any other program. The system's daemon takes a relative PATH from \
        your directory among its downloads, and an absolute one must lie below one of its downloads.roots. Each attempt \
        sends the file from the beginning; a file that changes during the upload is sent again. POST and PATCH are retried only with \
        --retries. The number of bytes and the server's answer are reported on standard error.
        """)

    @Option(help: .value("word", "PUT, POST or PATCH (default: PUT).")) var method: UploadSpec.Method?

    @Option(
        help: .value("digest", "The required digest of the file, such as sha256:HEX, or the 64 digits of SHA-256."),
        transform: digest)
    var checksum: JSON?

    @OptionGroup(title: "Request options") var fields: HeaderOptions
    @OptionGroup(title: "Job options") var options: SpecOptions
    @OptionGroup var global: GlobalOptions

    @Argument(help: "The file.", completion: .file()) var path: String

    @Argument(help: "Where to.") var url: String

    func source(isOwn: Bool) throws(CommandFailure) -> JSONObject {
        [
            "type": SourceType.upload.rawValue.json, "url": url.json,
            "path": try Surroundings.path(path, isOwn: isOwn, isRead: true).json,
            "method": method?.rawValue.json, "headers": fields.headers, "checksum": checksum,
        ]
    }

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        try await invocation.submit(
            options,
            making: { client throws(CommandFailure) in
                options.spec(source: try source(isOwn: try await Surroundings.takesPaths(client)))
            }
        ) { job in
            guard !options.quiet, let size = job.result?["size"]?.int else { return }
            let status = job.result?["status"]?.int.map { ", answered with \($0)" } ?? ""
            let span = JobText(job, now: .now).runtime.map { " in " + Quantities.span($0) } ?? ""
            invocation.console.say("\(Quantities.size(size))\(span)\(status)")
        }
    }
}
