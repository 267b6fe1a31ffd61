import JobModel

/// The reason why a source failed; a cancelled one fails with `CancellationError` instead.
public struct SourceError: Error, Sendable {
    /// A kind of failure.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        /// The code's name.
        public let description: String

        init(_ kind: JobError.Kind) { description = kind.rawValue }

        /// The host's name has no address.
        public static let dns = Code(.dns)
        /// The connection could not be made.
        public static let connect = Code(.connect)
        /// The server is not trusted or does not speak TLS.
        public static let tls = Code(.tls)
        /// The connection broke, or the answer was not valid.
        public static let network = Code(.network)
        /// The server was silent or slow for too long, or the source's own ``URLSource/timeout`` passed.
        public static let timeout = Code(.timeout)
        /// The server answered with an unsuccessful status; see ``SourceError/status``.
        public static let http = Code(.http)
        /// The URL, its address or the path is not allowed.
        public static let policy = Code(.policy)
        /// The path exists, or another download is writing it.
        public static let exists = Code(.exists)
        /// The file system failed or is full.
        public static let storage = Code(.storage)
        /// The file does not have the requested digest.
        public static let checksum = Code(.checksum)
        /// The body is not JSON, or not of the requested type.
        public static let parse = Code(.parse)
        /// The JSON has nothing at the pointer.
        public static let select = Code(.select)
        /// The header, body or document exceeds the session's limits.
        public static let tooLarge = Code(.tooLarge)
        /// The session was shut down.
        public static let cancelled = Code(.cancelled)
        /// The source or the options have an invalid value.
        public static let invalid = Code(.invalid)
    }

    /// The kind of failure.
    public let code: Code
    /// One sentence that names the object and what to do next.
    public let message: String
    /// Whether the same source may succeed later.
    public let isRetryable: Bool
    /// The server's status, if ``code`` is ``Code/http``.
    public let status: Int?
    /// How long the server asks for no requests.
    public let retryAfter: Duration?
    /// The errors of the URL and of each mirror, if there were several.
    public let failures: [SourceError]
    /// The underlying error, such as that of a decoder.
    public let underlying: (any Error)?

    init(_ kind: JobError.Kind, _ message: String, underlying: (any Error)? = nil) {
        self.init(JobError(kind, message), underlying: underlying)
    }

    init(_ error: JobError, underlying: (any Error)? = nil) {
        code = Code(error.kind)
        message = error.message
        isRetryable = error.isRetryable
        status = error.http?["status"]?.int
        retryAfter = (error.retryAfter ?? error.postponed).map { .seconds($0) }
        failures = error.failures?.map { SourceError($0) } ?? []
        self.underlying = underlying
    }
}

extension SourceError: CustomStringConvertible {
    /// The code and the message.
    public var description: String { "\(code): \(message)" }
}
