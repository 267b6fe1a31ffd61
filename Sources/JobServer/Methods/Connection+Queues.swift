import JobCore
import JobEngine
import JobModel
import JobProtocol

/// `queue.list` and `queue.set`.
extension Connection {
    func queueList(_ call: Call) async throws(ProtocolError) {
        try call.read([]) { _ in }
        let status = engine.status
        call.succeed(["queues": .array(status.queues.map { $0.json(status, for: caller) })])
    }

    func queueSet(_ call: Call) async throws(ProtocolError) {
        let names = ["queue", "concurrency", "perUser", "suspended"]
        let (name, change) = try call.read(names) { (params) throws(SpecError) in
            let name = try params.requiredString("queue") { name in
                name.utf8.count > 64 ? "A queue's name is at most 64 bytes long." : nil
            }
            return (
                name,
                QueueChange(
                    concurrency: try params.integer("concurrency", in: 1...100_000),
                    perUser: try params.integer("perUser", in: 1...100_000), isSuspended: try params.flag("suspended"))
            )
        }
        call.succeed(try await ask(.setQueue(name, change), \.queue).json(engine.status, for: caller))
    }
}

extension QueueStatus {
    /// Returns the queue object of the wire contract.
    fileprivate func json(_ status: EngineStatus, for caller: Caller) -> JSON {
        let jobs = status.jobs(of: caller.owner, queue: settings.name)
        func count(_ state: JobState) -> JSON { JSON(jobs[state, default: 0]) }
        return [
            "queue": .string(settings.name), "concurrency": JSON(settings.concurrency), "perUser": JSON(perUser),
            "suspended": .bool(settings.isSuspended), "scheduled": count(.scheduled), "queued": count(.queued),
            "running": count(.running),
        ]
    }
}
