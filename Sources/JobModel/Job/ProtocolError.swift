/// Why a call failed, as its answer says: a code, a sentence, and data for programs.
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
    package init(_ code: Code, _ message: String, _ details: JSONObject = [:]) {
        let kind: JSONObject = ["kind": code.kind?.json]
        self.init(
            code: code.rawValue, message: message.shortened(to: JobError.mostMessage),
            data: JSONObject(kind.members + details.members))
    }

    /// Reports a limit; the client may try again after this many seconds.
    package static func busy(_ message: String, retryAfter: Int) -> ProtocolError {
        ProtocolError(.busy, message, ["retryAfter": retryAfter.json])
    }

    /// Describes an invalid member of the params, or one that policy forbids.
    package init(_ fault: SpecError) {
        let details = Self.details(of: fault)
        if fault.isForbidden {
            self.init(.forbidden, fault.reason, ["pointer": details["pointer"]])
        } else {
            self.init(.invalidParams, "Invalid params: \(fault.reason)", details)
        }
    }

    private static func details(of fault: SpecError) -> JSONObject {
        [
            "pointer": fault.pointer.description.echoed.json,
            "reason": fault.reason.shortened(to: JobError.mostMessage).json,
        ]
    }

    /// The same error with all mistakes of a spec, if there are several.
    package func with(mistakes: [SpecError]) -> ProtocolError {
        guard mistakes.count > 1 else { return self }
        var data = data
        data["mistakes"] = .array(mistakes.map { .object(Self.details(of: $0)) })
        return ProtocolError(code: code, message: message, data: data)
    }

    package var json: JSON {
        .object(["code": code.json, "message": message.json, "data": data.members.isEmpty ? nil : .object(data)])
    }

    /// Reads an error, or returns nil if `json` is not one.
    package init?(json: JSON) {
        guard let code = json["code"]?.int, let message = json["message"]?.string else { return nil }
        self.init(code: code, message: message, data: json["data"]?.object ?? JSONObject())
    }
}
