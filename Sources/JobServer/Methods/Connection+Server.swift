import Glibc
import JobCore
import JobEngine
import JobModel
import JobProtocol
import MetricsRegistry

/// `server.info` and `server.stats`.
extension Connection {
    func serverInfo(_ call: Call) throws(ProtocolError) {
        try call.read([]) { _ in }
        var limits = self.limits.json.object ?? [:]
        limits["storedPerUser"] = engine.settings.core.storedPerUser.json
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
        let metrics = try call.read(["metrics"]) { (params) throws(SpecError) in try params.flag("metrics") }
        let wantsMetrics = metrics ?? false
        guard !wantsMetrics || caller.isAdmin else {
            throw ProtocolError(.forbidden, "Only administrators see the daemon's metrics; ask one of them.")
        }
        let status = engine.status
        let counts = status.jobs(of: caller.owner)
        var jobs = JSONObject()
        for state in JobState.allCases { jobs[state.rawValue] = counts[state, default: 0].json }
        let totals = status.totals(of: caller.owner)
        let connections = caller.isAdmin ? server.connectionCount : server.connectionCount(of: caller.uid)
        var answer: JSONObject = [
            "uptime": server.uptime.json, "jobs": .object(jobs),
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
                "free": free?.json, "minimumFree": engine.settings.minimumFree.json,
                "failure": (status.storageFailure ?? status.shortage)?.json,
            ])
            if wantsMetrics {
                engine.metrics.update(
                    { engine.status }, uptime: server.uptime, connections: server.connectionCount, freeBytes: free)
                answer["metrics"] = .array(server.metrics.families)
            }
        }
        call.succeed(.object(answer))
    }
}
