import JobCore
import JobEngine
import JobModel
import JobProtocol

/// A call that is being carried out, and where its answer goes.
struct Call: Sendable {
    let request: Request
    /// The reason why it cannot be executed.
    var rejection: ProtocolError?
    /// The answers of its batch; nil for a call on a line of its own.
    let batch: Batch?
    /// The memory of its line, until it is answered.
    let charge: BudgetCharge
    let outbox: Outbox

    // MARK: - Answers

    func succeed(_ result: JSON) { succeed(text: result.utf8) }

    /// Answers with JSON text; `afterwards` runs once that is sent.
    func succeed(text: [UInt8], afterwards: (@Sendable () -> Void)? = nil) {
        reply(request.id.map { Answer.success(id: $0, result: text) }, afterwards)
    }

    /// Answers with members, at least one, and an array whose elements are JSON text.
    func succeed(
        _ members: JSONObject, _ name: String, _ elements: [UInt8], afterwards: (@Sendable () -> Void)? = nil
    ) {
        let start = JSON.object(members).utf8.dropLast() + Array(",\"\(name)\":[".utf8)
        succeed(text: start + elements + Array("]}".utf8), afterwards: afterwards)
    }

    func fail(_ error: any Error) {
        let error = ProtocolError(of: error)
        reply(request.id.map { Answer.failure(id: $0, error: error) })
    }

    /// Sends an answer, or adds it to its batch; a notification has none.
    func reply(_ answer: [UInt8]?, _ afterwards: (@Sendable () -> Void)? = nil) {
        var answer = answer
        let longest = outbox.longestAnswer
        if let id = request.id, let written = answer, written.count > longest {
            let error = ProtocolError.busy("The answer is longer than \(longest) bytes; ask for less.", retryAfter: 0)
            answer = Answer.failure(id: id, error: error)
        }
        if let batch { return batch.add(answer, of: request.id, afterwards) }
        if let answer { outbox.send(answer: answer) }
        afterwards?()
    }

    /// The bytes that the result may take. A call that changed something must be answered, so its result takes no more.
    var room: Int { min(roomOutsideBatch, batch.map { $0.room - Answer.envelope } ?? .max) }

    /// The bytes that the result may take in a line of its own.
    var roomOutsideBatch: Int { outbox.longestAnswer - Answer.envelope - (request.id?.size ?? 0) }

    // MARK: - Params

    /// The params, which have no other members than these.
    func params(_ names: [String] = []) throws(SpecError) -> MemberReader {
        let params = MemberReader(request.params)
        try params.allow(names)
        return params
    }
}

extension ProtocolError {
    /// The error of a call, as clients see it.
    init(of error: any Error) {
        switch error {
        case let error as ProtocolError: self = error
        case let error as SpecError: self.init(error)
        case let error as StoreError: self.init(.storage, error.message)
        default: self.init(.internal, "\(error)")
        }
    }
}

extension MemberReader {
    /// The one of these members that is given; `request` asks for one.
    func one(of names: [String], _ request: String) throws(SpecError) -> String {
        let given = names.filter { value($0) != nil }
        if given.count == 1 { return given[0] }
        let quoted = names.map { "\"\($0)\"" }
        let list = quoted.dropLast().joined(separator: ", ")
        guard given.isEmpty else { throw fault(given[1], "Give only one of \(list) and \(quoted[quoted.count - 1]).") }
        throw fault(names[0], "\(request): \(list) or \(quoted[quoted.count - 1]).")
    }

    /// The uid of the member `owner`.
    func owner() throws(SpecError) -> UInt32? {
        try integer("owner", in: 0...Int(UInt32.max)).map(UInt32.init)
    }

    /// The required member `job`.
    func job() throws(SpecError) -> JobID {
        guard let id = try integer("job", in: 1...Int.max) else { throw missing("job") }
        return JobID(id)
    }

    /// The jobs of the member `job` or `jobs`; nil if both are left out. None may be named twice unless they `mayRepeat`.
    func jobs(atMost most: Int, mayRepeat: Bool = false) throws(SpecError) -> [JobID]? {
        if value("job") != nil { return [try job()] }
        guard let elements = try array("jobs", atMost: most) else { return nil }
        var ids: [JobID] = []
        var seen: Set<JobID> = []
        for (index, element) in elements.enumerated() {
            guard let id = element.int, id > 0, case .number = element else {
                throw SpecError(
                    pointer(to: "jobs").appending(index), "A job is named by its id, a whole number from 1 on.")
            }
            guard mayRepeat || seen.insert(JobID(id)).inserted else {
                throw SpecError(pointer(to: "jobs").appending(index), "Job \(id) is named twice; name each once.")
            }
            ids.append(JobID(id))
        }
        return ids
    }
}
