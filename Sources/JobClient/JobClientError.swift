public import JobModel
import JobProtocol

/// Why a call, a connection or its notifications failed.
public struct JobClientError: Error, Sendable {
    /// The kind of failure.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        /// The code's name.
        public let description: String

        private init(_ name: String) { description = name }

        /// No daemon could be reached at the socket.
        public static let unreachable = Code("unreachable")
        /// The caller may not connect to the socket.
        public static let denied = Code("denied")
        /// The connection ended before the answer came. The daemon may or may not have carried out the call.
        public static let closed = Code("closed")
        /// The daemon answered with an error; see ``JobClientError/rpc``.
        public static let rpc = Code("rpc")
        /// The daemon sent something that is not in version 1 of the protocol. The connection is closed.
        public static let protocolViolation = Code("protocolViolation")
        /// The calling task was cancelled. The daemon may or may not carry out the call.
        public static let cancelled = Code("cancelled")
        /// ``JobClient/notifications`` were not read fast enough. The connection is closed.
        public static let slowReader = Code("slowReader")
        /// The program misused the client; nothing was sent.
        public static let misuse = Code("misuse")
    }

    /// The daemon's error.
    public struct Remote: Sendable, Hashable {
        /// The code of JSON-RPC (-32700...) or of deferd (-32001...).
        public let code: Int
        /// The name of a code of deferd: `not-found`, `busy`.
        public let kind: String?
        /// A sentence.
        public let message: String
        /// Details for programs: `retryAfter`, `pointer`, `state`.
        public let data: JSON
    }

    /// The kind of failure.
    public let code: Code
    /// A sentence that says what happened, to what, and what to do next.
    public let message: String
    /// The daemon's error, if ``code`` is ``Code/rpc``.
    public let rpc: Remote?
    /// The cause, such as the error of a system call.
    public let underlying: (any Error)?

    init(_ code: Code, _ message: String, rpc: Remote? = nil, underlying: (any Error)? = nil) {
        (self.code, self.message, self.rpc, self.underlying) = (code, message, rpc, underlying)
    }
}

extension JobClientError: CustomStringConvertible {
    /// The code and the message.
    public var description: String {
        rpc.map { "\(code) \($0.code) (\($0.kind ?? "no kind")): \(message)" } ?? "\(code): \(message)"
    }
}

extension JobClientError {
    init(_ error: ProtocolError) {
        self.init(
            .rpc, error.message,
            rpc: Remote(
                code: error.code, kind: error.data["kind"]?.string, message: error.message, data: .object(error.data)))
    }

    /// The answer to `method` lacks a member that the protocol requires.
    static func malformed(_ method: MethodName, _ member: String) -> JobClientError {
        JobClientError(
            .protocolViolation,
            "The daemon's answer to \(method.rawValue) has no valid \"\(member)\"; is it another version?")
    }

    static let closedHere = JobClientError(
        .closed, "This program closed the connection to the daemon; connect again.")
    static let closedThere = JobClientError(
        .closed, "The daemon closed the connection; connect again when it runs.")
    static let slowReader = JobClientError(
        .slowReader,
        "More than \(JobClient.maximumWaitingBytes) bytes of notifications were not read; read them faster or watch less, "
            + "and connect again.")
}
