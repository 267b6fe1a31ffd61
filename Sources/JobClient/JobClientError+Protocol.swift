import JobModel
import JobProtocol

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
