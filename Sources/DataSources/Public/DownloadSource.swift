public import DeferredKit
import JobModel

/// Downloads a file and checks it; under its final name, the file is complete or missing.
///
/// ```swift
/// let file = try await DownloadSource(url, to: "tool.tar.gz", in: downloads).start().get()
/// ```
///
/// The file grows as `tool.tar.gz.part`. An interrupted transfer keeps that file, and a later start for the same path
/// resumes it if the server can confirm that the file is unchanged; see ``resumes``. Cancelling leaves no file behind.
public struct DownloadSource: DataSource {
    /// What to do with an existing file at the path.
    public enum Exists: String, Sendable {
        /// Fail with the code `exists`.
        case fail
        /// Replace it in one step when the new file is complete.
        case replace
        /// Use the next free name: `tool-1.tar.gz`.
        case rename
        /// Succeed without a transfer.
        case skip
        /// Replace it if the server says that it changed since it was downloaded.
        case validate
    }

    /// A downloaded file.
    public struct File: Sendable, Hashable {
        /// Its absolute path.
        public let path: String
        /// Its size in bytes.
        public let size: Int64
        /// Its SHA-256 in lower-case hexadecimal digits.
        public let sha256: String
        /// The server's status; nil without a transfer.
        public let status: Int?
        /// The server's `ETag`.
        public let etag: String?
        /// The server's `Last-Modified`.
        public let lastModified: String?
        /// The number of bytes that an earlier transfer had fetched.
        public let resumedFrom: Int64
        /// Its URL after redirects.
        public let url: String
    }

    /// The URL of the file: `http` or `https`.
    public var url: String
    /// The path to write to. Neither `..` nor a symbolic link leads out of ``directory``.
    public var path: String
    /// The directory for a relative ``path``, which is made if it is missing; nil for the current one.
    public var directory: String?
    /// Fields to send, except for those of the connection itself, such as `Host`.
    public var headers: [String: String] = [:]
    /// What to do with an existing file at the path; by default, fail.
    public var exists = Exists.fail
    /// The SHA-256 that the file must have, as 64 hexadecimal digits.
    public var sha256: String?
    /// Other URLs of the file, tried in order when one fails; at most 32. Those of another origin do not get the credentials
    /// among the headers.
    public var mirrors: [String] = []
    /// The most bytes per second; nil, the default, for no limit.
    public var rate: Int?
    /// The number of connections to use at once, 1 to 16, if the server supports ranges; 1 by default.
    public var segments = 1
    /// Whether the file gets the time of the server's `Last-Modified`.
    public var remoteTime = false
    /// The longest time that the download may take; nil, the default, for only the session's limits.
    public var timeout: Duration?
    /// Whether to resume an interrupted transfer, and to keep its data for that.
    public var resumes = true
    /// The session whose connections are used.
    public var session: SourceSession

    /// Describes a download that fails if the file exists.
    ///
    /// - Parameters:
    ///   - url: The URL of the file.
    ///   - path: The path to write to. Without `directory`, the directory of an absolute path is trusted.
    ///   - directory: The directory that the path must not leave.
    ///   - session: The session whose connections are used.
    public init(_ url: String, to path: String, in directory: String? = nil, session: SourceSession = .shared) {
        self.url = url
        self.path = path
        self.directory = directory
        self.session = session
    }

    /// Starts the download.
    ///
    /// Progress counts bytes of the file. Callbacks run on an event loop by default.
    ///
    /// - Returns: The file, durably written. Fails with a ``SourceError``, or with `CancellationError`; cancelling
    ///   removes the fetched data before `cancel()` returns.
    public func start() -> Deferred<File, any Error> {
        do throws(SourceError) {
            let (spec, directories) = try checked()
            let target = directories.primary + "/" + spec.path
            guard resumes else { return download(spec, directories, target, nil) }
            return session.records.entry(target).flatMap { [self] entry in
                download(spec, directories, target, entry["checkpoint"])
            }
        } catch {
            return .failed(error)
        }
    }

    private func download(
        _ spec: DownloadSpec, _ directories: DownloadDirectories, _ target: String, _ checkpoint: JSON?
    ) -> Deferred<File, any Error> {
        var context = session.context(timeout: timeout, path: target, resumes: resumes)
        context.checkpoint = checkpoint
        context.connections = spec.segments
        let records = session.records
        return session.library.download(spec, below: directories, context)
            .then { result in
                // If the checkpoint of a complete file cannot be removed, it does no harm.
                records.change(target) { $0["checkpoint"] = nil }.both { _ in File(result) }
            }
            .translated(keeping: session)
    }

    /// The download, checked like those of jobs, and the directory that it must stay below.
    private func checked() throws(SourceError) -> (DownloadSpec, DownloadDirectories) {
        var (path, directory) = (path, directory)
        if directory == nil, path.hasPrefix("/"), let slash = path.lastIndex(of: "/") {
            directory = slash == path.startIndex ? "/" : String(path[..<slash])
            path = String(path[path.index(after: slash)...])
        }
        let directories: DownloadDirectories
        do throws(JobError) {
            directories = try DownloadDirectories(SourceSession.absolute(directory ?? ""))
        } catch {
            throw SourceError(error)
        }
        let fields: JSONObject = [
            "type": "download", "url": .string(url), "path": .string(path), "headers": JSON(fields: headers),
            "exists": .string(exists.rawValue), "mirrors": .array(mirrors.map(JSON.string)),
            "segments": JSON(segments), "remoteTime": .bool(remoteTime), "rate": rate?.json,
            "checksum": sha256.map { .string("sha256:" + $0) },
        ]
        guard case .download(let spec) = try SourceParameters(.object(fields)) else {
            preconditionFailure("A source of the type download is one.")
        }
        return (spec, directories)
    }
}

extension DownloadSource.File {
    fileprivate init(_ result: JSON) {
        path = result["path"]?.string ?? ""
        size = Int64(result["size"]?.int ?? 0)
        sha256 = result["sha256"]?.string ?? ""
        status = result["status"]?.int
        etag = result["etag"]?.string
        lastModified = result["lastModified"]?.string
        resumedFrom = Int64(result["resumedFrom"]?.int ?? 0)
        url = result["url"]?.string ?? ""
    }
}
