public import JobModel
import JobProtocol

/// Why a call, a connection or its stream of notifications ended without success.
public struct JobClientError: Error, Sendable {
    /// What kind of failure it was.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        /// The code's name.
        public let description: String

        private init(_ name: String) { description = name }

        /// No daemon could be reached at the socket.
        public static let unreachable = Code("unreachable")
        /// There is a socket, but the caller may not connect to it.
        public static let denied = Code("denied")
        /// The connection ended before the answer came. Whether the call was carried out is not known.
        public static let closed = Code("closed")
        /// The daemon answered with an error; see ``JobClientError/rpc``.
        public static let rpc = Code("rpc")
        /// The daemon sent something that version 1 of the protocol does not know. The connection is closed.
        public static let protocolViolation = Code("protocolViolation")
        /// The calling task was cancelled. Whether the call was carried out is not known.
        public static let cancelled = Code("cancelled")
        /// More than ``JobClient/maximumCalls`` calls were waiting; this one was not sent.
        public static let tooManyCalls = Code("tooManyCalls")
        /// ``JobClient/notifications`` were not read fast enough. The connection is closed.
        public static let slowReader = Code("slowReader")
        /// The program used the client in a way that it is not made for; nothing was sent.
        public static let misuse = Code("misuse")
    }

    /// The error of an answer, as the daemon wrote it.
    public struct Remote: Sendable, Hashable {
        /// The code of JSON-RPC (-32700...) or of deferd (-32001...).
        public let code: Int
        /// The word that goes with a code of deferd: `not-found`, `busy`.
        public let kind: String?
        /// A sentence.
        public let message: String
        /// More that a program can act on: `retryAfter`, `pointer`, `state`.
        public let data: JSON

        package init(code: Int, kind: String?, message: String, data: JSON) {
            (self.code, self.kind, self.message, self.data) = (code, kind, message, data)
        }
    }

    /// What kind of failure it was.
    public let code: Code
    /// One sentence that names the object and what to do next.
    public let message: String
    /// The error of the answer, where ``code`` is ``Code/rpc``.
    public let rpc: Remote?
    /// The error below this one, such as that of the system call.
    public let underlying: (any Error)?

    package init(_ code: Code, _ message: String, rpc: Remote? = nil, underlying: (any Error)? = nil) {
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

    /// The answer to `method` lacks a member that the protocol says it has.
    static func malformed(_ method: MethodName, _ member: String) -> JobClientError {
        JobClientError(
            .protocolViolation,
            "The daemon's answer to \(method.rawValue) has no proper \"\(member)\"; is it another version?")
    }

    static var closedHere: JobClientError {
        JobClientError(.closed, "The connection to the daemon was closed by this program; connect again.")
    }

    static var closedThere: JobClientError {
        JobClientError(.closed, "The daemon closed the connection; connect again once it runs.")
    }
}
