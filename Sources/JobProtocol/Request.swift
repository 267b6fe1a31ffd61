package import JobModel

/// A call: a method, its params by name, and the id for its answer.
package struct Request: Sendable, Equatable {
    /// A string, a number or null, unchanged; nil for a notification, which is never answered.
    package let id: JSON?
    package let method: String
    package let params: JSONObject

    package init(id: JSON?, method: String, params: JSONObject) {
        self.id = id
        self.method = method
        self.params = params
    }

    /// The request as one line, including its end.
    package var line: [UInt8] {
        let request: JSONObject = ["jsonrpc": "2.0", "id": id, "method": method.json, "params": .object(params)]
        return JSON.object(request).utf8 + [UInt8(ascii: "\n")]
    }
}

/// The calls of one line from a client.
package struct IncomingLine: Sendable {
    package let calls: [IncomingCall]
    /// Whether the answers are sent together in one array.
    package let isBatch: Bool
    /// The approximate memory of its values, in bytes.
    package let cost: Int

    /// Reads a line. An invalid one, or one that needs more than `budget` bytes, becomes a rejected call.
    package init(_ line: [UInt8], budget: Int) {
        do throws(JSONSyntaxError) {
            let (json, cost) = try line.withUnsafeBufferPointer { (bytes) throws(JSONSyntaxError) in
                try JSONParser.parse(UnsafeRawBufferPointer(bytes), budget: budget, boundsCombining: true)
            }
            self.cost = cost
            isBatch = json.array?.isEmpty == false
            calls =
                json.array.map { $0.isEmpty ? [.invalid("the batch is empty.")] : $0.map(IncomingCall.read) }
                ?? [.read(json)]
        } catch {
            let rejection = ProtocolError(.parse, "Parse error: \(error).")
            let tooLarge = ProtocolError(
                .invalidRequest, "The line has too many values, \(error); split the request up.", ["kind": "too-large"])
            (calls, isBatch, cost) = ([IncomingCall(id: .null, error.isTooLarge ? tooLarge : rejection)], false, 0)
        }
    }
}

/// A call, or the reason why a value is not one.
package struct IncomingCall: Sendable, Equatable {
    /// Of a rejected call, only the id is known.
    package let request: Request
    /// The error that answers it, unless it has no id.
    package let rejection: ProtocolError?

    package init(_ request: Request) {
        self.request = request
        rejection = nil
    }

    package init(id: JSON?, _ rejection: ProtocolError) {
        request = Request(id: id, method: "", params: JSONObject())
        self.rejection = rejection
    }

    /// A value that is not even recognizable as a notification is answered with the id null.
    fileprivate static func invalid(_ reason: String, id: JSON? = nil) -> IncomingCall {
        IncomingCall(id: id ?? .null, ProtocolError(.invalidRequest, "Invalid request: \(reason)"))
    }

    /// The maximum size of an id in bytes; ids stay in memory until their call is answered.
    private static let longestID = 4096
    private static let members = ["jsonrpc", "id", "method", "params"]

    fileprivate static func read(_ json: JSON) -> IncomingCall {
        guard let object = json.object else { return invalid("a call is an object, not \(json.typeName).") }
        let id = object["id"]
        switch id {
        case nil, .null, .string, .number: break
        default: return invalid("\"id\" must be a string, a number or null.")
        }
        if let id, id.size > longestID { return invalid("\"id\" may take at most \(longestID) bytes.") }
        guard object["jsonrpc"] == "2.0" else { return invalid("\"jsonrpc\" must be \"2.0\".", id: id) }
        guard case .string(let method) = object["method"] else {
            return invalid("\"method\" must be a string.", id: id)
        }
        if let stranger = object.members.first(where: { !members.contains($0.name) }) {
            return invalid("a call has no member \"\(stranger.name.echoed)\".", id: id)
        }
        switch object["params"] {
        case nil, .null: return IncomingCall(Request(id: id, method: method, params: JSONObject()))
        case .object(let params): return IncomingCall(Request(id: id, method: method, params: params))
        case .array:
            let fault = SpecError(JSONPointer(), "Params are given by name, in an object, not in an array.")
            return IncomingCall(id: id, ProtocolError(fault))
        default: return invalid("\"params\" must be an object.", id: id)
        }
    }
}

/// The methods of protocol version 1.
package enum MethodName: String, Sendable, CaseIterable {
    case serverInfo = "server.info"
    case serverStats = "server.stats"
    case serverUsage = "server.usage"
    case serverNodes = "server.nodes"
    case serverBackup = "server.backup"
    case jobSubmit = "job.submit"
    case jobGet = "job.get"
    case jobList = "job.list"
    case jobWait = "job.wait"
    case jobWatch = "job.watch"
    case jobUnwatch = "job.unwatch"
    case jobCancel = "job.cancel"
    case jobRetry = "job.retry"
    case jobRemove = "job.remove"
    case jobHold = "job.hold"
    case jobRelease = "job.release"
    case jobSet = "job.set"
    case jobResult = "job.result"
    case jobOutput = "job.output"
    case jobExplain = "job.explain"
    case queueList = "queue.list"
    case queueSet = "queue.set"
    case scheduleSet = "schedule.set"
    case scheduleGet = "schedule.get"
    case scheduleList = "schedule.list"
    case scheduleRemove = "schedule.remove"
    case scheduleRun = "schedule.run"
    case scheduleSuspend = "schedule.suspend"
    case scheduleResume = "schedule.resume"
}
