import JobModel
import Testing

/// Every error code, with its kind, and the pointer and the reason for invalid params.
@Suite struct RefusalTests {
    private static let value: JSON = ["type": "value", "value": 1]

    @Test func method_isRefusedWithPointer_whenParamsAreWrong() async throws {
        try await Daemon.run { _, wire in
            let wrong: [(String, JSON, String)] = [
                // `JobModelTests` have all that can be wrong with a spec.
                ("job.submit", [:], "/source"), ("job.submit", ["source": Self.value, "watch": 1], "/watch"),
                ("server.info", ["a": 1], "/a"), ("server.stats", ["a": 1], "/a"), ("queue.list", ["a": 1], "/a"),
                ("job.get", [:], "/job"), ("job.get", ["job": "1"], "/job"), ("job.get", ["job": 1.5], "/job"),
                ("job.get", ["job": 0], "/job"), ("job.get", ["job": 1, "a": 1], "/a"),
                ("job.wait", [:], "/job"), ("job.wait", ["jobs": 1], "/jobs"),
                ("job.wait", ["jobs": [1, 0]], "/jobs/1"), ("job.wait", ["jobs": [1, 1]], "/jobs/1"),
                ("job.wait", ["jobs": .array((1...1001).map { JSON($0) })], "/jobs"),
                ("job.wait", ["job": 1, "jobs": [1]], "/jobs"),
                ("job.wait", ["job": 1, "timeout": -1], "/timeout"), ("job.wait", ["job": 1, "a": 1], "/a"),
                ("job.unwatch", [:], "/watch"), ("job.unwatch", ["watch": 1], "/watch"),
                ("job.cancel", [:], "/job"), ("job.cancel", ["job": 1, "why": "x"], "/why"),
                ("job.retry", ["job": 1, "from": "end"], "/from"), ("job.retry", ["from": "start"], "/job"),
                ("job.remove", [:], "/job"), ("job.result", [:], "/job"),
                ("job.result", ["job": 1, "offset": -1], "/offset"),
                ("job.result", ["job": 1, "length": -1], "/length"),
                ("job.explain", [:], "/source"), ("job.explain", ["source": Self.value, "watch": true], "/watch"),
                ("queue.set", [:], "/queue"), ("queue.set", ["queue": "a", "concurrency": 0], "/concurrency"),
                ("queue.set", ["queue": "a", "suspended": 1], "/suspended"), ("queue.set", ["queue": ""], "/queue"),
                ("queue.set", ["queue": "a", "more": 1], "/more"),
                ("job.list", ["limit": 0], "/limit"), ("job.list", ["limit": 1001], "/limit"),
                ("job.list", ["limit": "3"], "/limit"), ("job.list", ["limit": 1.5], "/limit"),
                ("job.list", ["order": "random"], "/order"), ("job.list", ["state": ["done"]], "/state/0"),
                ("job.list", ["state": "queued"], "/state"), ("job.list", ["source": "ftp"], "/source"),
                ("job.list", ["after": -1], "/after"), ("job.list", ["wat": 1], "/wat"),
                ("job.list", ["tag": 3], "/tag"),
                ("job.watch", [:], "/job"), ("job.watch", ["all": false], "/all"), ("job.watch", ["all": 1], "/all"),
                ("job.watch", ["jobs": [1, "2"]], "/jobs/1"), ("job.watch", ["job": "1"], "/job"),
                ("job.watch", ["tag": "a", "interval": -1], "/interval"),
                ("job.watch", ["tag": "a", "children": "yes"], "/children"),
                ("job.watch", ["tag": "a", "more": 1], "/more"),
            ]
            for (method, params, pointer) in wrong {
                let refusal = try await wire.refusal(method, params)
                #expect(refusal.code == -32602, "\(method) \(params): \(refusal)")
                #expect(refusal.pointer == pointer, "\(method) \(params): \(refusal)")
                #expect(refusal.reason?.isEmpty == false, "\(method) \(params): \(refusal)")
                #expect(!refusal.message.isEmpty)
            }
            let both = try await wire.refusal("job.watch", ["job": 1, "all": true])
            #expect(both.code == -32602 && both.pointer != nil)
        }
    }

    @Test func job_isNotFound_byAnyMethod() async throws {
        try await Daemon.run { _, wire in
            for method in ["get", "wait", "watch", "cancel", "retry", "remove", "result"] {
                let refusal = try await wire.refusal("job.\(method)", ["job": 12345])
                #expect(refusal.code == -32001, "\(method)")
                #expect(refusal.kind == "not-found", "\(method)")
            }
            let job = try await wire.submit(.value(1))
            for method in ["wait", "watch"] {
                let refusal = try await wire.refusal("job.\(method)", ["jobs": [JSON(job), 12345]])
                #expect(refusal.code == -32001, "\(method)")
            }
        }
    }

    @Test func state_isWrong_forWhatItDoesNotAllow() async throws {
        try await Daemon.run { _, wire in
            let done = try await wire.submit(.value(1))
            let failed = try await wire.submit(.failure())
            let running = try await wire.submit(.timer(1000))
            _ = try await wire.call("job.wait", ["jobs": [JSON(done), JSON(failed)]])
            let wrong: [(String, Int, [JSON])] = [
                ("cancel", done, ["succeeded"]), ("cancel", failed, ["failed"]), ("retry", done, ["succeeded"]),
                ("retry", running, ["queued", "running"]), ("remove", running, ["queued", "running"]),
                ("result", running, ["queued", "running"]), ("result", failed, ["failed"]),
            ]
            for (method, job, states) in wrong {
                let refusal = try await wire.refusal("job.\(method)", .job(job))
                #expect(refusal.code == -32004, "\(method)")
                #expect(refusal.kind == "wrong-state", "\(method)")
                #expect(states.contains(refusal.data["state"] ?? .null), "\(method): \(refusal)")
            }
        }
    }
}
