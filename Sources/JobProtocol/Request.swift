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

/// The contents of one line from a client.
package enum IncomingLine: Sendable, Equatable {
    /// One call, or the reason why the value is not a call.
    case single(IncomingCall)
    /// Calls whose answers are sent together in one array.
    case batch([IncomingCall])

    /// Reads a line and returns the approximate memory of its values in bytes.
    /// An invalid line, or one that needs more than `budget`, becomes a rejected call.
    package static func read(_ line: [UInt8], budget: Int) -> (line: IncomingLine, cost: Int) {
        let parsed = line.withUnsafeBytes { raw in
            Result { () throws(JSONSyntaxError) in try JSONParser.parse(raw, budget: budget) }
        }
        switch parsed {
        case .success(let (json, cost)): return (read(json), cost)
        case .failure(let error) where error.isTooLarge:
            let error = ProtocolError(
                .invalidRequest, "The line has too many values, \(error); split the request up.",
                ["kind": "too-large"])
            return (.single(.rejected(id: .null, error)), 0)
        case .failure(let error):
            return (.single(.rejected(id: .null, ProtocolError(.parse, "Parse error: \(error)."))), 0)
        }
    }

    private static func read(_ json: JSON) -> IncomingLine {
        guard case .array(let elements) = json else { return .single(.read(json)) }
        return elements.isEmpty
            ? .single(.invalid(id: .null, "the batch is empty.")) : .batch(elements.map(IncomingCall.read))
    }
}

/// A call, or the reason why a value is not a call.
package enum IncomingCall: Sendable, Equatable {
    case request(Request)
    /// It is answered with the error, unless `id` is nil.
    case rejected(id: JSON?, ProtocolError)

    /// The id for its answer; nil without an answer.
    package var id: JSON? {
        switch self {
        case .request(let request): request.id
        case .rejected(let id, _): id
        }
    }

    /// The maximum size of an id in bytes; ids stay in memory until their call is answered.
    private static let longestID = 4096
    private static let members = ["jsonrpc", "id", "method", "params"]

    fileprivate static func read(_ json: JSON) -> IncomingCall {
        guard let object = json.object else { return .invalid(id: .null, "a call is an object, not \(json.typeName).") }
        let id = object["id"]
        switch id {
        case nil, .null, .string, .number: break
        default: return .invalid(id: .null, "\"id\" must be a string, a number or null.")
        }
        if let id, id.size > longestID { return .invalid(id: .null, "\"id\" may take at most \(longestID) bytes.") }
        guard object["jsonrpc"] == "2.0" else { return .invalid(id: id, "\"jsonrpc\" must be \"2.0\".") }
        guard case .string(let method) = object["method"] else {
            return .invalid(id: id, "\"method\" must be a string.")
        }
        if let stranger = object.members.first(where: { !members.contains($0.name) }) {
            return .invalid(id: id, "a call has no member \"\(stranger.name.echoed)\".")
        }
        switch object["params"] {
        case nil: return .request(Request(id: id, method: method, params: JSONObject()))
        case .object(let params): return .request(Request(id: id, method: method, params: params))
        case .array:
            let fault = SpecError(JSONPointer(), "Params are given by name, in an object, not in an array.")
            return .rejected(id: id, ProtocolError(fault))
        default: return .invalid(id: id, "\"params\" must be an object.")
        }
    }

    /// A value that is not even recognizable as a notification is answered with the id null.
    fileprivate static func invalid(id: JSON?, _ reason: String) -> IncomingCall {
        .rejected(id: id ?? .null, ProtocolError(.invalidRequest, "Invalid request: \(reason)"))
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

    /// Whether the method changes no state, so a call whose client is gone need not be executed.
    package var isRead: Bool {
        switch self {
        case .serverInfo, .serverStats, .serverUsage, .serverNodes, .serverBackup, .jobGet, .jobList, .jobWait,
            .jobWatch, .jobResult, .jobOutput, .jobExplain, .queueList, .scheduleGet, .scheduleList:
            true
        case .jobSubmit, .jobUnwatch, .jobCancel, .jobRetry, .jobRemove, .jobHold, .jobRelease, .jobSet, .queueSet,
            .scheduleSet, .scheduleRemove, .scheduleRun, .scheduleSuspend, .scheduleResume:
            false
        }
    }
}
