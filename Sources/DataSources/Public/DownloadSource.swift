public import DeferredKit
import JobModel

/// Fetches a file and checks it; under its name the file is there whole or not at all.
///
/// ```swift
/// let file = try await DownloadSource(url, to: "tool.tar.gz", in: downloads).start().get()
/// ```
///
/// The file grows as `tool.tar.gz.part`. Where a transfer breaks off, that stays, and a later start for the same path goes
/// on with it, if the server can say that the file is still the same; see ``resumes``. Cancelling leaves nothing behind.
public struct DownloadSource: DataSource {
    /// What to do when there is a file at the path already.
    public enum Exists: String, Sendable {
        /// Fail with the code `exists`.
        case fail
        /// Replace it with the new file, at once, when that is complete.
        case replace
        /// Use the next free name: `tool-1.tar.gz`.
        case rename
        /// Succeed without a transfer.
        case skip
        /// Ask the server whether it changed since it was downloaded, and replace it if it did.
        case validate
    }

    /// A file that was downloaded.
    public struct File: Sendable, Hashable {
        /// Its absolute path.
        public let path: String
        /// Its bytes.
        public let size: Int64
        /// Its SHA-256 in lower-case hexadecimal digits.
        public let sha256: String
        /// The server's status; nil without a transfer.
        public let status: Int?
        /// The server's `ETag`.
        public let etag: String?
        /// The server's `Last-Modified`.
        public let lastModified: String?
        /// How much of it an earlier transfer had fetched.
        public let resumedFrom: Int64
        /// Where it came from, after redirects.
        public let url: String
    }

    /// Where the file is: `http` or `https`.
    public var url: String
    /// Where it goes. Below ``directory``, nothing leads out of that: neither `..` nor a symbolic link.
    public var path: String
    /// The directory that a relative ``path`` lies in, made where it is missing; nil for the current one.
    public var directory: String?
    /// Fields to send; those of the connection itself, such as `Host`, may not be among them.
    public var headers: [String: String] = [:]
    /// What to do when there is a file at the path already; by default, fail.
    public var exists = Exists.fail
    /// The SHA-256 that the file must have, as 64 hexadecimal digits.
    public var sha256: String?
    /// Where else the file is, tried in order when one fails; at most 32.
    public var mirrors: [String] = []
    /// Bytes a second; nil, the default, for no limit.
    public var rate: Int?
    /// Connections to fetch it with at once, 1 to 16, where the server can give parts of the file; 1 by default.
    public var segments = 1
    /// How long it may take; nil, the default, for no limit beside those of the session.
    public var timeout: Duration?
    /// Whether to go on with a transfer that broke off, and to keep what it fetched for that.
    public var resumes = true
    /// The session whose connections are used.
    public var session: SourceSession

    /// A download that fails where there is a file already; the properties make others of it.
    ///
    /// - Parameters:
    ///   - url: Where the file is.
    ///   - path: Where it goes. The directory in an absolute path is trusted as it is written, if none is given.
    ///   - directory: The directory that nothing leads out of.
    ///   - session: The session whose connections are used.
    public init(_ url: String, to path: String, in directory: String? = nil, session: SourceSession = .shared) {
        self.url = url
        self.path = path
        self.directory = directory
        self.session = session
    }

    /// Starts the download.
    ///
    /// Progress is in bytes of the file. Callbacks run on an event loop unless told otherwise.
    ///
    /// - Returns: The file, durably written. It fails with a ``SourceError``, or `CancellationError`; cancelling it
    ///   removes what was fetched before `cancel()` returns.
    public func start() -> Deferred<File, any Error> {
        do throws(SourceError) {
            let (spec, directories) = try checked()
            let target = directories.primary + "/" + spec.path
            guard resumes else { return download(spec, directories, target, nil) }
            return session.records.entry(target).flatMap { [self] entry in
                download(spec, directories, target, entry.checkpoint)
            }
        } catch {
            return .failed(error)
        }
    }

    private func download(
        _ spec: DownloadSpec, _ directories: DownloadDirectories, _ target: String, _ checkpoint: JSON?
    ) -> Deferred<File, any Error> {
        let context = session.context(
            timeout: timeout, checkpoint: checkpoint, resumes: resumes, connections: spec.segments, path: target)
        let records = session.records
        return session.library.download(spec, below: directories, context)
            .then { result in
                // The checkpoint is of no use any more; if it cannot be removed, it does no harm.
                records.change(target) { $0.checkpoint = nil }.both { _ in File(result) }
            }
            .translated(keeping: session)
    }

    /// The transfer, checked as those of jobs are, and the directory that it must stay below.
    private func checked() throws(SourceError) -> (DownloadSpec, DownloadDirectories) {
        var (path, directory) = (path, directory)
        if directory == nil, path.hasPrefix("/"), let slash = path.lastIndex(of: "/") {
            (directory, path) = (String(path[..<slash]), String(path[path.index(after: slash)...]))
        }
        let directories: DownloadDirectories
        do throws(JobError) {
            directories = try DownloadDirectories(SourceSession.absolute(directory ?? ""))
        } catch {
            throw SourceError(error)
        }
        var fields = JSONObject()
        fields.append("type", "download")
        fields.append("url", .string(url))
        fields.append("path", .string(path))
        fields.append("headers", JSON(fields: headers))
        fields.append("exists", .string(exists.rawValue))
        fields.append("mirrors", .array(mirrors.map(JSON.string)))
        fields.append("checksum", ifPresent: sha256.map { .string("sha256:" + $0) })
        fields.append("segments", JSON(segments))
        fields.append("rate", ifPresent: rate.map { JSON($0) })
        guard case .download(let spec) = try SourceParameters(.object(fields)) else {
            preconditionFailure("A source of the type download is one.")
        }
        return (spec, directories)
    }
}

extension DownloadSource.File {
    /// The file that the result of a download tells of.
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
