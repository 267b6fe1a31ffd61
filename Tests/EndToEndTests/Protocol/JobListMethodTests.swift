import JobModel
import Testing

/// `job.list`: its filters, its orders and its pages.
@Suite struct JobListMethodTests {
    private func ids(_ wire: Wire, _ params: JSON = [:]) async throws -> [Int] {
        (try await wire.call("job.list", params)["jobs"]?.array ?? []).compactMap { $0["job"]?.int }
    }

    @Test func list_filters_byWhatJobsAre() async throws {
        try await Daemon.run(configuration: "queues:\n  default: 16\n  other: 1\n") { _, wire in
            let scheduled = try await wire.submit(.value(1, ["delay": 1000, "tags": ["a", "b"]]))
            let running = try await wire.submit(.timer(1000, ["queue": "other", "tags": ["b"], "watch": true]))
            try await wire.state("running", of: running)
            _ = try await wire.call("queue.set", ["queue": "other", "suspended": true])
            let queued = try await wire.submit(.value(1, ["queue": "other"]))
            let succeeded = try await wire.submit(.value(2, ["tags": ["a"]]))
            let failed = try await wire.submit(.failure())
            let cancelled = try await wire.submit(.timer(1000))
            _ = try await wire.call("job.cancel", .job(cancelled))
            _ = try await wire.call("job.wait", ["jobs": [JSON(succeeded), JSON(failed), JSON(cancelled)]])
            let filters: [(JSON, [Int])] = [
                (["state": ["scheduled"]], [scheduled]), (["state": ["running"]], [running]),
                (["state": ["queued"]], [queued]), (["state": ["succeeded"]], [succeeded]),
                (["state": ["failed"]], [failed]), (["state": ["cancelled"]], [cancelled]),
                (["state": ["failed", "running"]], [failed, running]),
                (["state": ["queued", "running"]], [queued, running]),
                (["queue": "other"], [queued, running]), (["queue": "default", "state": ["failed"]], [failed]),
                (["queue": "nowhere"], []), (["tag": "a"], [succeeded, scheduled]),
                (["tag": "b"], [running, scheduled]),
                (["tag": "a", "state": ["scheduled"]], [scheduled]), (["tag": "c"], []),
                (["source": "timer"], [cancelled, running]), (["source": "error"], [failed]),
                (["source": "download"], []), (["tag": "b", "order": "oldest"], [scheduled, running]),
                (["tag": "b", "order": "oldest", "limit": 1], [scheduled]),
                (["tag": "b", "after": JSON(running)], [scheduled]),
            ]
            for (params, expected) in filters { #expect(try await ids(wire, params) == expected, "\(params)") }
        }
    }
}
