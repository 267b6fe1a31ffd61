import Glibc
import JobCore
import JobEngine
import JobModel
import JobProtocol
import Synchronization

/// Guards the buffer of `getpwuid`.
private let userNames = Mutex(())

/// The name of a user. Blocks.
private func userName(_ uid: UInt32) -> String? {
    userNames.withLock { _ in getpwuid(uid).map { String(cString: $0.pointee.pw_name) } }
}

/// `server.info`, `server.stats`, `server.usage`, `server.nodes`, `queue.list` and `queue.set`.
extension Connection {
    func serverInfo(_ call: Call) throws {
        _ = try call.params()
        var limits = self.limits.json.object ?? [:]
        limits["storedPerUser"] = engine.settings.core.storedPerUser.json
        limits["minimumFree"] = engine.settings.minimumFree.json
        let refused = caller.isAdmin ? server.refusedConfiguration.withLock(\.self) : nil
        call.succeed(
            .object([
                "name": "deferd", "version": .string(server.version), "protocol": 1, "pid": JSON(Int(getpid())),
                "instance": engine.settings.isSystemInstance ? "system" : "user",
                "startedAt": .string(server.startedAt.description),
                "store": .string(engine.settings.store.rawValue), "node": .string(engine.settings.node.name),
                "sources": .array(SourceType.allCases.map { .string($0.rawValue) }),
                "methods": .array(MethodName.allCases.map { .string($0.rawValue) }),
                "limits": .object(limits),
                "you": ["uid": JSON(Int(caller.uid)), "admin": .bool(caller.isAdmin)],
                "configuration": refused.map { ["refused": .string($0.reason), "at": $0.at.json] },
            ]))
    }

    func serverStats(_ call: Call) async throws {
        let wantsMetrics = try call.params(["metrics"]).flag("metrics") ?? false
        guard !wantsMetrics || caller.isAdmin else {
            throw ProtocolError(.forbidden, "Only administrators see the daemon's metrics; ask one of them.")
        }
        let status = engine.status
        let totals = status.totals(of: caller.owner)
        var answer: JSONObject = [
            "uptime": server.uptime.json, "jobs": status.jobs(of: caller.owner).json,
            "totals": [
                "submitted": totals.submitted.json, "succeeded": totals.succeeded.json, "failed": totals.failed.json,
                "cancelled": totals.cancelled.json, "retried": totals.retried.json,
            ],
            "connections": server.connectionCount(of: caller.owner).json,
            "watches": status.watches(of: caller.owner).json,
            "bytes": ["received": engine.metrics.transferred(for: caller.owner).json],
        ]
        if caller.isAdmin {
            let free = await engine.blocking(for: caller.uid) { [blobs = engine.blobs] in blobs.freeBytes }
            answer["storage"] = .object([
                "free": free?.json, "minimumFree": engine.settings.minimumForJobs.json,
                "failure": (status.storageFailure ?? status.core.shortage)?.json,
            ])
            if wantsMetrics {
                let families = engine.metrics.families(
                    engine.status, uptime: server.uptime, connections: server.connectionCount(), freeBytes: free)
                answer["metrics"] = .array(families)
            }
        }
        call.succeed(.object(answer))
    }

    // MARK: - Queues

    func queueList(_ call: Call) throws {
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
        guard case .queue(let queue) = try await ask(.setQueue(name, change)) else { throw Self.wrongAnswer }
        call.succeed(queue.json(engine.status, for: caller))
    }
}

extension Lookup {
    /// What each user makes the daemon store and run.
    func serverUsage(_ call: Call) throws {
        let params = try call.params(["after", "limit"])
        let after = try params.integer("after", in: 0...Int(UInt32.max))
        let limit = try params.integer("limit", in: 1...1000) ?? 100
        let (status, slots) = (engine.status, engine.board.slots)
        let users = caller.isAdmin ? status.owners.union(server.users) : [caller.uid]
        let next = users.filter { Int($0) > after ?? -1 }.sorted()
        let shown = next.prefix(limit)
        let rows = shown.map { uid -> JSON in
            .object([
                "uid": JSON(Int(uid)), "name": userName(uid)?.json,
                "jobs": status.jobs(of: uid).json,
                "running": JSON(slots.values.reduce(0) { $0 + $1[uid, default: 0] }),
                "stored": status.stored(of: uid).json,
                "memory": JSON(server.memory(of: uid)), "schedules": JSON(status.core.schedules[uid]?.jobs ?? 0),
            ])
        }
        call.succeed(["users": .array(rows), "next": next.count > limit ? JSON(Int(shown.last ?? 0)) : .null])
    }

    /// The daemons that share the jobs.
    func serverNodes(_ call: Call) throws {
        _ = try call.params()
        let found = try engine.reader.nodes()
        let own = NodeRow(
            engine.settings.node, startedAt: server.startedAt, seen: engine.clock.wall(), state: .running,
            running: engine.board.slots.values.reduce(0) { $0 + $1.values.reduce(0, +) })
        // The daemon that answers runs, even if it could not tell the database for a while.
        let nodes = (found.isEmpty ? [own] : found).map { $0.json(isAnswering: $0.node.name == own.node.name) }
        call.succeed(["nodes": .array(nodes)])
    }
}

extension [JobState: Int] {
    fileprivate var json: JSON {
        .object(JobState.allCases.reduce(into: JSONObject()) { $0[$1.rawValue] = self[$1, default: 0].json })
    }
}

extension NodeRow {
    /// The node object of the wire contract.
    fileprivate func json(isAnswering: Bool) -> JSON {
        [
            "node": node.name.json, "version": node.version.json, "startedAt": startedAt.json, "seen": seen.json,
            "state": (isAnswering ? State.running : state).rawValue.json, "running": running.json,
            "programs": node.programs.json, "configuration": node.configuration.json,
        ]
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
        guard let rate = try params.members(of: "startRate") else { return nil }
        try rate.allow(["count", "seconds"])
        guard let count = try rate.integer("count", in: 1...StartRate.most) else { throw rate.missing("count") }
        return StartRate(count: count, seconds: try rate.number("seconds", in: 0.001...86_400) ?? 1)
    }
}
