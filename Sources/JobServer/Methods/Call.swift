import JobCore
import JobEngine
import JobModel
import JobProtocol

/// A call that is being carried out.
struct Call: Sendable {
    let request: Request
    let replies: Replies
    let charge: BudgetCharge

    func succeed(_ result: JSON) { succeed(text: result.utf8) }

    /// Answers with JSON text; `afterwards` runs once that is sent.
    func succeed(text: [UInt8], afterwards: (@Sendable () -> Void)? = nil) {
        replies.succeed(
            request.id, answer: request.id.map { Answer.success(id: $0, result: text) }, afterwards: afterwards)
    }

    /// Answers with the text of the elements of an array, and further members.
    func succeed(
        _ name: String, _ elements: [UInt8], _ further: JSONObject = [:], watch: String? = nil,
        afterwards: (@Sendable () -> Void)? = nil
    ) {
        var writer = JSONWriter(reservingCapacity: elements.count + 64)
        writer.raw("{")
        if let watch { writer.raw(text: "\"watch\":\"\(watch)\",") }
        writer.raw(text: "\"\(name)\":[")
        writer.raw(elements)
        writer.raw("]")
        for member in further.members {
            writer.raw(text: ",\"\(member.name)\":")
            writer.write(member.value)
        }
        writer.raw("}")
        succeed(text: writer.bytes, afterwards: afterwards)
    }

    /// Answers with one job. A call that changed it must be answered, so a batch without room gets less of it.
    func succeed(job: JobView, wasChanged: Bool = false) {
        succeed(text: job.text(.whole, within: wasChanged ? room : roomOutsideBatch))
    }

    /// The bytes that the result may take, and those in a line of its own.
    var room: Int { replies.room(for: request.id) }
    var roomOutsideBatch: Int { replies.roomOutsideBatch(for: request.id) }

    func fail(_ error: any Error) { replies.fail(request.id, ProtocolError(of: error)) }

    /// The params, which have no other members than these.
    func params(_ names: [String] = []) throws(SpecError) -> MemberReader {
        let params = MemberReader(request.params)
        try params.allow(names)
        return params
    }
}

extension MemberReader {
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
        if value("job") != nil {
            guard value("jobs") == nil else { throw fault("jobs", "Give either \"job\" or \"jobs\", not both.") }
            return [try job()]
        }
        guard let elements = try array("jobs", atMost: most) else { return nil }
        var ids: [JobID] = []
        var seen: Set<JobID> = []
        for (index, element) in elements.enumerated() {
            guard let id = element.int, id > 0, case .number = element else {
                throw SpecError(
                    pointer(to: "jobs").appending(index), "A job is named by its id, not \(element.typeName).")
            }
            guard mayRepeat || seen.insert(JobID(id)).inserted else {
                throw SpecError(pointer(to: "jobs").appending(index), "Job \(id) is named twice; name each once.")
            }
            ids.append(JobID(id))
        }
        return ids
    }
}
