import JobModel
import TestOrigin
import Testing

/// Limits on connections, unanswered calls, waiting jobs, and unread output.
@Suite struct LimitTests {
    @Test func call_isRefused_whenTooManyWait() async throws {
        try await GuidedOrigin.withDaemon(configuration: "limits:\n  inFlight: 3\n") { origin, daemon, wire in
            let job = try await wire.submit(.fetch(origin.url("/a")))
            let waits = (0..<3).map { _ in wire.send("job.wait", .job(job)) }
            // Waits count, so the next request is above the limit, whatever it asks for.
            let calls: [(String, JSON)] = [
                ("job.wait", .job(job)), ("server.info", [:]), ("job.submit", .value(1)),
            ]
            for (method, params) in calls {
                let refusal = try await wire.refusal(method, params)
                #expect(refusal.code == -32003 && refusal.kind == "busy", "\(method)")
                #expect(refusal.data["retryAfter"]?.double ?? 0 > 0)
            }
            // It does not affect another connection.
            let other = try daemon.connect()
            #expect(try await other.call("server.info")["limits"]?["inFlight"] == 3)
            try await origin.exchange("/a").answer(.text("a"))
            for wait in waits { #expect(try await wire.result(wait)["state"] == "succeeded") }
            #expect(try await wire.wait(job)["state"] == "succeeded")
        }
    }

    /// The values of the line take all memory of its user, for which the answer to the wait waits.
    @Test func wait_isAnswered_besideALineThatTakesAllMemory() async throws {
        try await Daemon.run(configuration: "limits: {memoryPerUser: 1048576}") { _, wire in
            let job = try await wire.submit(.value(1, ["held": true]))
            let other = try await wire.submit(.value(1, ["held": true]))
            func call(_ id: Int, _ method: String, _ params: JSON) -> JSON {
                ["jsonrpc": "2.0", "id": JSON(id), "method": .string(method), "params": params]
            }
            let zeros = call(3, "server.info", ["x": .array(Array(repeating: 0, count: 60_000))])
            let sets = (0..<600).map { call(10 + $0, "job.set", .job(other).with(["priority": JSON($0)])) }
            let batch = [call(1, "job.wait", .job(job)), call(2, "job.cancel", .job(job))] + sets + [zeros]
            wire.sendLine(JSON.array(batch).description)
            #expect(try await wire.next()?.json.array?.count == batch.count)
        }
    }

    @Test func line_takesNoMemory_whileItsLastCallWaits() async throws {
        try await Daemon.run { _, wire in
            let job = try await wire.submit(.value(1, ["delay": 1000]))
            func memory() async throws -> Int {
                let usage = try await wire.call("server.usage")
                return try #require(usage["users"]?.array?.first?["memory"]?.int)
            }
            let before = try await memory()
            let long = JSON.string(String(repeating: "x", count: 4000))
            let call: JSON = ["jsonrpc": "2.0", "method": "server.info", "params": ["x": long]]
            let wait: JSON = ["jsonrpc": "2.0", "id": "wait", "method": "job.wait", "params": .job(job)]
            wire.sendLine("\(JSON.array(Array(repeating: call, count: 100) + [wait]))")
            // What is read together is handled, and forgotten, before more is read.
            _ = try await wire.call("server.info")
            #expect(try await memory() - before < 100_000)
        }
    }

    @Test func submit_isRefused_whenTooManyJobsWait() async throws {
        for configuration in ["limits:\n  queuedJobs: 3\n", "limits:\n  queuedJobsPerUser: 3\n"] {
            try await Daemon.run(configuration: configuration) { _, wire in
                var jobs: [Int] = []
                for _ in 0..<3 { jobs.append(try await wire.submit(.value(1, ["delay": 1000]))) }
                let refusal = try await wire.refusal("job.submit", .value(1))
                #expect(refusal.code == -32003)
                #expect(refusal.kind == "busy")
                #expect(refusal.data["retryAfter"]?.double ?? 0 > 0)
                _ = try await wire.call("job.cancel", .job(jobs[0]))
                _ = try await wire.wait(jobs[0])
                #expect(try await wire.call("job.submit", .value(1, ["delay": 1000]))["created"] == true)
            }
        }
    }
}
