import ArgumentParser
import JobClient
import JobModel

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
