import JobCore
import JobEngine
import JobModel
import JobProtocol

/// `server.info` and `server.stats`.
extension Connection {
    func serverInfo(_ call: Call) throws(ProtocolError) {
        try call.read { (params) throws(SpecError) in try params.allow([]) }
        let identity = server.identity
        var limits = engine.settings.limits.json.object ?? JSONObject()
        limits.append("storedPerUser", JSON(Int(engine.settings.core.storedPerUser)))
        call.succeed([
            "name": .string(identity.name), "version": .string(identity.version), "protocol": 1,
            "pid": JSON(identity.pid), "startedAt": .string(identity.startedAt.description),
            "sources": .array(SourceType.allCases.map { .string($0.rawValue) }),
            "methods": .array(MethodName.allCases.map { .string($0.rawValue) }),
            "limits": .object(limits),
            "you": ["uid": JSON(Int(caller.uid)), "admin": .bool(caller.isAdmin)],
        ])
    }

    func serverStats(_ call: Call) async throws(ProtocolError) {
        try call.read { (params) throws(SpecError) in try params.allow([]) }
        let statistics = try await ask(.statistics, \.statistics)
        var jobs = JSONObject()
        for state in JobState.allCases { jobs.append(state.rawValue, JSON(statistics.jobs[state, default: 0])) }
        let totals = statistics.totals
        call.succeed([
            "uptime": JSON(statistics.uptime), "jobs": .object(jobs),
            "totals": [
                "submitted": JSON(totals.submitted), "succeeded": JSON(totals.succeeded),
                "failed": JSON(totals.failed), "cancelled": JSON(totals.cancelled), "retried": JSON(totals.retried),
            ],
            "connections": JSON(caller.isAdmin ? server.connectionCount : server.connectionCount(of: caller.uid)),
            "watches": JSON(statistics.watches),
            "bytes": ["received": JSON(Int(totals.bytesReceived))],
        ])
    }
}
