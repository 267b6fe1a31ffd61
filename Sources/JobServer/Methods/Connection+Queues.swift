import JobCore
import JobEngine
import JobModel
import JobProtocol

/// `queue.list` and `queue.set`.
extension Connection {
    func queueList(_ call: Call) async throws {
        _ = try call.params()
        let status = engine.status
        call.succeed(["queues": .array(status.queues.map { $0.json(status, for: caller) })])
    }

    func queueSet(_ call: Call) async throws {
        let params = try call.params(["queue", "concurrency", "perUser", "suspended", "startRate", "byteRate"])
        let name = try params.requiredString("queue") { name in
            name.utf8.count > 64 ? "A queue's name is at most 64 bytes long." : nil
        }
        let change = try QueueChange(params)
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
            "startRate": settings.startRate.map { ["count": JSON($0.count), "seconds": JSON($0.seconds)] } ?? .null,
            "byteRate": settings.byteRate?.json ?? .null, "suspended": .bool(settings.isSuspended),
            "scheduled": count(.scheduled), "held": count(.held), "queued": count(.queued), "running": count(.running),
        ]
    }
}

extension QueueChange {
    /// Reads the settings that are named; null gives one back to the configuration.
    fileprivate init(_ params: MemberReader) throws(SpecError) {
        self.init()
        func setting<Value>(_ name: String, _ value: Value?) -> Value?? {
            params.object[name] == nil ? nil : .some(value)
        }
        concurrency = setting("concurrency", try params.integer("concurrency", in: 1...100_000))
        perUser = setting("perUser", try params.integer("perUser", in: 1...100_000))
        isSuspended = setting("suspended", try params.flag("suspended"))
        byteRate = setting("byteRate", try params.integer("byteRate", in: 1...1 << 50))
        startRate = setting("startRate", try Self.startRate(params))
    }

    private static func startRate(_ params: MemberReader) throws(SpecError) -> StartRate? {
        guard let written = params.value("startRate") else { return nil }
        let rate = try MemberReader(written, at: params.pointer(to: "startRate"))
        try rate.allow(["count", "seconds"])
        guard let count = try rate.integer("count", in: 1...StartRate.most) else { throw rate.missing("count") }
        return StartRate(count: count, seconds: try rate.number("seconds", in: 0.001...86_400) ?? 1)
    }
}
