package import JobModel

/// The `error` of an answer: a code, a sentence, and data for programs.
package struct ProtocolError: Error, Sendable, Equatable {
    /// The codes of JSON-RPC 2.0 and of deferd.
    package enum Code: Int, Sendable, CaseIterable {
        case parse = -32700
        case invalidRequest = -32600
        case methodNotFound = -32601
        case invalidParams = -32602
        case `internal` = -32603
        case notFound = -32001
        case forbidden = -32002
        case busy = -32003
        case wrongState = -32004
        case shuttingDown = -32005
        case keyConflict = -32006
        case timeout = -32007
        case storage = -32008

        /// The word in `data.kind`; nil for JSON-RPC's own codes.
        package var kind: String? {
            switch self {
            case .parse, .invalidRequest, .methodNotFound, .invalidParams, .internal: nil
            case .notFound: "not-found"
            case .forbidden: "forbidden"
            case .busy: "busy"
            case .wrongState: "wrong-state"
            case .shuttingDown: "shutting-down"
            case .keyConflict: "key-conflict"
            case .timeout: "timeout"
            case .storage: "storage"
            }
        }
    }

    package let code: Int
    package let message: String
    package let data: JSONObject

    package init(code: Int, message: String, data: JSONObject) {
        self.code = code
        self.message = message
        self.data = data
    }

    /// Creates an error with its kind and `details` as data.
    package init(_ code: Code, _ message: String, _ details: [JSONObject.Member] = []) {
        var data = JSONObject()
        data.append("kind", ifPresent: code.kind.map(JSON.string))
        for detail in details { data.append(detail.name, detail.value) }
        self.init(code: code.rawValue, message: message.shortened(to: JobError.mostMessage), data: data)
    }

    /// Reports a limit; the client may try again after this many seconds.
    package static func busy(_ message: String, retryAfter: Int) -> ProtocolError {
        ProtocolError(.busy, message, [JSONObject.Member(name: "retryAfter", value: JSON(retryAfter))])
    }

    /// Describes an invalid member of the params.
    package init(_ fault: SpecError) {
        self.init(
            .invalidParams, "Invalid params: \(fault.reason)",
            [
                JSONObject.Member(name: "pointer", value: .string(fault.pointer.description.echoed)),
                JSONObject.Member(name: "reason", value: .string(fault.reason.shortened(to: JobError.mostMessage))),
            ])
    }

    package var json: JSON {
        var object = JSONObject()
        object.append("code", JSON(code))
        object.append("message", .string(message))
        if !data.members.isEmpty { object.append("data", .object(data)) }
        return .object(object)
    }

    /// Reads an error, or returns nil if `json` is not one.
    package init?(json: JSON) {
        guard let code = json["code"]?.int, let message = json["message"]?.string else { return nil }
        self.init(code: code, message: message, data: json["data"]?.object ?? JSONObject())
    }
}
