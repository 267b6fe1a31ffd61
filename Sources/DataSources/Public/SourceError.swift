import JobModel

/// Why a source failed.
///
/// One that was cancelled fails with `CancellationError` instead.
public struct SourceError: Error, Sendable {
    /// What kind of failure it was.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        private let word: String

        private init(_ word: String) { self.word = word }

        init(_ kind: JobError.Kind) { word = kind.rawValue }

        /// The host's name has no address.
        public static let dns = Code("dns")
        /// No connection came about.
        public static let connect = Code("connect")
        /// The server could not be trusted, or did not speak TLS.
        public static let tls = Code("tls")
        /// The connection broke, or what came over it was no proper answer.
        public static let network = Code("network")
        /// It took too long: the server was silent, or the source's own ``URLSource/timeout`` passed.
        public static let timeout = Code("timeout")
        /// The server answered with a status that is no success; see ``SourceError/status``.
        public static let http = Code("http")
        /// The URL, the address that it led to, or the path is not allowed.
        public static let policy = Code("policy")
        /// There is a file at the path already, or another download is writing it.
        public static let exists = Code("exists")
        /// The file system failed, or is full.
        public static let storage = Code("storage")
        /// The file is not the one that was asked for.
        public static let checksum = Code("checksum")
        /// The body is no JSON, or not of the type that was asked for.
        public static let parse = Code("parse")
        /// The JSON has nothing at the pointer.
        public static let select = Code("select")
        /// Header, body or document is larger than the session's options allow.
        public static let tooLarge = Code("too-large")
        /// The session was shut down.
        public static let cancelled = Code("cancelled")
        /// The source or the options have a value that is not valid.
        public static let invalid = Code("invalid")

        /// The code's name.
        public var description: String { word }
    }

    /// What kind of failure it was.
    public let code: Code
    /// One sentence that names the object and what to do next.
    public let message: String
    /// Whether trying again without a change may help.
    public let isRetryable: Bool
    /// The server's status, where ``code`` is ``Code/http``.
    public let status: Int?
    /// How long the server asked not to be sent requests.
    public let retryAfter: Duration?
    /// The errors of the URL and of each mirror, where there were several.
    public let failures: [SourceError]
    /// The error below this one, such as what a decoder threw.
    public let underlying: (any Error)?

    init(_ code: Code, _ message: String, underlying: (any Error)? = nil) {
        self.code = code
        self.message = message
        isRetryable = false
        status = nil
        retryAfter = nil
        failures = []
        self.underlying = underlying
    }

    init(_ error: JobError) {
        code = Code(error.kind)
        message = error.message
        isRetryable = error.isRetryable
        status = error.http?.status
        retryAfter = (error.retryAfter ?? error.postponed).map { .seconds($0) }
        failures = error.failures?.map(SourceError.init) ?? []
        underlying = nil
    }

    /// The public error for a transfer's failure.
    static func translated(_ error: any Error) -> any Error {
        if let error = error as? JobError { SourceError(error) } else { error }
    }
}

extension SourceError: CustomStringConvertible {
    /// The code and the message.
    public var description: String { "\(code): \(message)" }
}
