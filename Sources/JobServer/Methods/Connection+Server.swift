import Glibc
import JobCore
import JobEngine
import JobModel
import JobProtocol

/// The name of a user. Blocks.
private func userName(_ uid: UInt32) -> String? {
    var (entry, found) = (passwd(), UnsafeMutablePointer<passwd>?.none)
    return withUnsafeTemporaryAllocation(of: CChar.self, capacity: 16 << 10) { buffer in
        guard let base = buffer.baseAddress, getpwuid_r(uid, &entry, base, buffer.count, &found) == 0, found != nil
        else {
            return nil
        }
        return entry.pw_name.map { String(cString: $0) }
    }
}

/// `server.info`, `server.stats`, `server.usage` and `server.nodes`.
extension Connection {
    func serverInfo(_ call: Call) throws {
        _ = try call.params()
        var limits = self.limits.json.object ?? [:]
        limits["storedPerUser"] = engine.settings.core.storedPerUser.json
        limits["minimumFree"] = engine.settings.minimumFree.json
        let refused = caller.isAdmin ? server.refusedConfiguration : nil
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

    /// What each user makes the daemon store and run.
    func serverUsage(_ call: Call) async throws {
        let params = try call.params(["after", "limit"])
        let after = try params.integer("after", in: 0...Int(UInt32.max))
        let limit = try params.integer("limit", in: 1...1000) ?? 100
        let (status, server, caller) = (engine.status, server, caller)
        let users = caller.isAdmin ? status.owners.union(server.users) : [caller.uid]
        let next = users.filter { Int($0) > after ?? -1 }.sorted()
        let shown = next.prefix(limit)
        let rows = await engine.blocking(for: caller.uid) { [board = engine.board] in
            let slots = board.slots
            return shown.map { uid -> JSON in
                let jobs = status.jobs(of: uid)
                return .object([
                    "uid": JSON(Int(uid)), "name": userName(uid)?.json,
                    "jobs": jobs.json,
                    "running": JSON(slots.values.reduce(0) { $0 + $1[uid, default: 0] }),
                    "stored": status.stored(of: uid).json,
                    "memory": JSON(server.memory(of: uid)), "schedules": JSON(status.core.schedules[uid]?.jobs ?? 0),
                ])
            }
        }
        call.succeed(["users": .array(rows), "next": next.count > limit ? JSON(Int(shown.last ?? 0)) : .null])
    }

    /// The daemons that share the jobs.
    func serverNodes(_ call: Call) async throws {
        _ = try call.params()
        let found = try await look { try $0.engine.reader.nodes() }
        let own = NodeRow(
            engine.settings.node, startedAt: server.startedAt, seen: engine.wallTime, state: .running,
            running: engine.board.slots.values.reduce(0) { $0 + $1.values.reduce(0, +) })
        let nodes = (found.isEmpty ? [own] : found).lazy.map { node in
            // The daemon that answers runs, even if it could not tell the database for a while.
            node.json(isAnswering: node.node.name == own.node.name).utf8
        }
        call.succeed("nodes", try call.fit(nodes).text)
    }

    func serverStats(_ call: Call) async throws {
        let wantsMetrics = try call.params(["metrics"]).flag("metrics") ?? false
        guard !wantsMetrics || caller.isAdmin else {
            throw ProtocolError(.forbidden, "Only administrators see the daemon's metrics; ask one of them.")
        }
        let status = engine.status
        let totals = status.totals(of: caller.owner)
        let connections = caller.isAdmin ? server.connectionCount : server.connectionCount(of: caller.uid)
        var answer: JSONObject = [
            "uptime": server.uptime.json, "jobs": status.jobs(of: caller.owner).json,
            "totals": [
                "submitted": totals.submitted.json, "succeeded": totals.succeeded.json, "failed": totals.failed.json,
                "cancelled": totals.cancelled.json, "retried": totals.retried.json,
            ],
            "connections": connections.json, "watches": status.watches(of: caller.owner).json,
            "bytes": ["received": totals.bytesReceived.json],
        ]
        if caller.isAdmin {
            let free = await engine.blocking(for: caller.uid) { [blobs = engine.blobs] in blobs.freeBytes }
            answer["storage"] = .object([
                "free": free?.json, "minimumFree": engine.settings.minimumForJobs.json,
                "failure": (status.storageFailure ?? status.core.shortage)?.json,
            ])
            if wantsMetrics {
                let families = engine.metrics.families(
                    engine.status, uptime: server.uptime, connections: server.connectionCount, freeBytes: free)
                answer["metrics"] = .array(families)
            }
        }
        call.succeed(.object(answer))
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
