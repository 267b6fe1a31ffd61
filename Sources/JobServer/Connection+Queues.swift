import JobEngine
import JobModel
import JobProtocol

/// `queue.list` and `queue.set`.
extension Connection {
    func queueList(_ call: Call) async throws(ProtocolError) {
        try call.read { (params) throws(SpecError) in try params.allow([]) }
        call.succeed(["queues": .array(await engine.queueList(for: caller))])
    }

    func queueSet(_ call: Call) async throws(ProtocolError) {
        let (name, concurrency, suspended) = try call.read { (params) throws(SpecError) in
            try params.allow(["queue", "concurrency", "suspended"])
            let name = try params.requiredString("queue") { name in
                name.utf8.count > 64 ? "A queue's name is at most 64 bytes long." : nil
            }
            return (name, try params.integer("concurrency", in: 1...100_000), try params.flag("suspended"))
        }
        call.succeed(
            try await Call.asking { () throws(EngineError) in
                try await engine.set(queue: name, concurrency: concurrency, suspended: suspended, for: caller)
            })
    }
}
