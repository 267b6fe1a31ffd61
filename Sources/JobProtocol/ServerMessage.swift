package import JobModel

/// The contents of one line from a server.
package enum ServerMessage: Sendable, Equatable {
    /// An answer to the call `id`; null if the server could not identify the call.
    case answer(id: JSON, Result<JSON, ProtocolError>)
    /// A notification such as `job.progress`.
    case notification(method: String, params: JSONObject)
    /// The answers to a batch.
    case batch([ServerMessage])

    /// Reads a line, or throws if it is none of these.
    package init(_ line: [UInt8]) throws(ServerMessageError) {
        let json: JSON
        do { json = try JSON(parsing: line, maximumDepth: 256) } catch { throw ServerMessageError(reason: "\(error)") }
        try self.init(json)
    }

    private init(_ json: JSON) throws(ServerMessageError) {
        if case .array(let elements) = json {
            var messages: [ServerMessage] = []
            for element in elements { messages.append(try ServerMessage(element)) }
            self = .batch(messages)
        } else if let method = json["method"]?.string, let params = json["params"]?.object {
            self = .notification(method: method, params: params)
        } else if let id = json["id"], let result = json["result"] {
            self = .answer(id: id, .success(result))
        } else if let id = json["id"], let error = json["error"].flatMap(ProtocolError.init(json:)) {
            self = .answer(id: id, .failure(error))
        } else {
            throw ServerMessageError(reason: "it is neither an answer nor a notification")
        }
    }
}

/// Why a line is not a message of a server, as a clause.
package struct ServerMessageError: Error, Sendable, Equatable {
    package let reason: String
}
