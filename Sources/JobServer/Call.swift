import JobEngine
import JobModel
import JobProtocol

/// One call on its way: who asks for what, and where the answer goes.
struct Call: Sendable {
    let request: Request
    let replies: Replies

    /// The params, to be read by name.
    var params: MemberReader {
        get throws(ProtocolError) {
            do { return try MemberReader(.object(request.params), at: JSONPointer()) } catch {
                throw ProtocolError(error)
            }
        }
    }

    func succeed(_ result: JSON, afterwards: (@Sendable () -> Void)? = nil) {
        replies.succeed(request.id, result, afterwards: afterwards)
    }

    func fail(_ error: ProtocolError) {
        replies.fail(request.id, error)
    }

    /// Reads params; what is wrong with them becomes the answer's error.
    func read<Value>(_ body: (MemberReader) throws(SpecError) -> Value) throws(ProtocolError) -> Value {
        let reader = try params
        do { return try body(reader) } catch { throw ProtocolError(error) }
    }

    /// Asks the engine; its refusal becomes the answer's error.
    static func asking<Value>(
        _ body: () async throws(EngineError) -> Value
    ) async throws(ProtocolError) -> Value {
        do { return try await body() } catch { throw ProtocolError(error) }
    }
}

extension MemberReader {
    /// The member `job`, which is required.
    func job() throws(SpecError) -> JobID {
        guard let id = try integer("job", in: 1...Int.max) else { throw missing("job") }
        return JobID(id)
    }

    /// The member `job` or the member `jobs`; nil where both are left out.
    func jobs() throws(SpecError) -> [JobID]? {
        if value("job") != nil {
            guard value("jobs") == nil else { throw fault("jobs", "Give either \"job\" or \"jobs\", not both.") }
            return [try job()]
        }
        guard let elements = try array("jobs", atMost: 100_000) else { return nil }
        var ids: [JobID] = []
        for (index, element) in elements.enumerated() {
            guard let id = element.int, id > 0, case .number = element else {
                throw SpecError(
                    place(of: "jobs").appending(index), "A job is named by its number, not \(element.typeName).")
            }
            ids.append(JobID(id))
        }
        return ids
    }
}
