import Glibc
import JobCore
import JobEngine
import JobModel
import JobProtocol
import MetricsRegistry

/// `server.info` and `server.stats`.
extension Connection {
    func serverInfo(_ call: Call) throws(ProtocolError) {
        try call.read { (params) throws(SpecError) in try params.allow([]) }
        var limits = self.limits.json.object ?? JSONObject()
        limits.append("storedPerUser", JSON(Int(engine.settings.core.storedPerUser)))
        call.succeed([
            "name": "deferd", "version": .string(server.version), "protocol": 1, "pid": JSON(Int(getpid())),
            "startedAt": .string(server.startedAt.description),
            "sources": .array(SourceType.allCases.map { .string($0.rawValue) }),
            "methods": .array(MethodName.allCases.map { .string($0.rawValue) }),
            "limits": .object(limits),
            "you": ["uid": JSON(Int(caller.uid)), "admin": .bool(caller.isAdmin)],
        ])
    }

    func serverStats(_ call: Call) async throws(ProtocolError) {
        let wantsMetrics = try call.read { (params) throws(SpecError) in
            try params.allow(["metrics"])
            return try params.flag("metrics") ?? false
        }
        guard !wantsMetrics || caller.isAdmin else {
            throw ProtocolError(.forbidden, "Only administrators see the daemon's metrics; ask one of them.")
        }
        let status = engine.status
        let counts = status.jobs(of: caller.owner)
        var jobs = JSONObject()
        for state in JobState.allCases { jobs.append(state.rawValue, JSON(counts[state, default: 0])) }
        let totals = status.totals(of: caller.owner)
        var answer = JSONObject([
            JSONObject.Member(name: "uptime", value: JSON(server.uptime)),
            JSONObject.Member(name: "jobs", value: .object(jobs)),
            JSONObject.Member(
                name: "totals",
                value: [
                    "submitted": JSON(totals.submitted), "succeeded": JSON(totals.succeeded),
                    "failed": JSON(totals.failed), "cancelled": JSON(totals.cancelled), "retried": JSON(totals.retried),
                ]),
            JSONObject.Member(
                name: "connections",
                value: JSON(caller.isAdmin ? server.connectionCount : server.connectionCount(of: caller.uid))),
            JSONObject.Member(name: "watches", value: JSON(status.watches(of: caller.owner))),
            JSONObject.Member(name: "bytes", value: ["received": JSON(Int(totals.bytesReceived))]),
        ])
        if caller.isAdmin {
            let free = await engine.freeBytes(for: caller.uid)
            answer.append("storage", storage(status, free: free))
            if wantsMetrics {
                engine.metrics.update(
                    { engine.status }, uptime: server.uptime, connections: server.connectionCount, freeBytes: free)
                answer.append("metrics", .array(server.metrics.families))
            }
        }
        call.succeed(.object(answer))
    }

    /// The room on the disk of the state, and the reason if nothing can be stored.
    private func storage(_ status: EngineStatus, free: Int64?) -> JSON {
        var storage = JSONObject()
        storage.append("free", ifPresent: free.map { JSON(Int($0)) })
        storage.append("minimumFree", JSON(Int(engine.settings.minimumFree)))
        storage.append("failure", ifPresent: (status.storageFailure ?? status.shortage).map(JSON.string))
        return .object(storage)
    }
}
