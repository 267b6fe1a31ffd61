import Glibc
import JobModel
import TestOrigin
import TestSupport
import Testing

extension DurabilityTests {
    @Test func jobs_stayAsTheyWere_whenKilled() async throws {
        try await GuidedOrigin.withHousehold(
            { _, _ in Reply(body: [UInt8](repeating: 66, count: 200_000)) }
        ) { origin, household in
            var (daemon, wire) = try await household.serve()
            let value = try await wire.run(.value(["a": 1.50], ["key": "k", "tags": ["t"]]))
            let failed = try await wire.run(.failure("mine"))
            let large = try await wire.run(.fetch(origin.url("/large")))
            #expect(large["result"]?["spilled"] == true)
            let stopped = try await wire.submit(.timer(1000))
            _ = try await wire.call("job.cancel", .job(stopped))
            let cancelled = try await wire.wait(stopped)
            let delayed = try await wire.submit(.value(2, ["delay": 1000]))
            let before = try await wire.call("job.get", .job(delayed))
            let removed = try await wire.run(.value(3))
            _ = try await wire.call("job.remove", .job(removed["job"]?.int ?? 0))
            try await daemon.crash()

            (daemon, wire) = try await household.serve()
            for job in [value, failed, large, cancelled, before] {
                #expect(try await wire.call("job.get", .job(job["job"]?.int ?? 0)) == job)
            }
            let piece = try await wire.call(
                "job.result", ["job": large["job"] ?? .null, "offset": 199_999])
            #expect(piece["data"] == "Qg==")
            #expect(try await wire.refusal("job.get", .job(removed["job"]?.int ?? 0)).code == -32001)
            let stats = try await wire.call("server.stats")["jobs"]
            #expect(
                stats == [
                    "scheduled": 1, "held": 0, "queued": 0, "running": 0, "succeeded": 2, "failed": 1, "cancelled": 1,
                ])
            #expect(origin.requests.count == 1, "what is done is not done again")
            try await daemon.stop()
        }
    }

    @Test func deadline_passes_whileDaemonIsDown() async throws {
        try await Household.with { household in
            var daemon = try await household.start()
            let job = try await daemon.connect().submit(.timer(1000, ["deadline": 0.5]))
            try await daemon.crash()
            daemon = try await household.start()
            // Its timer alone would have it wait for longer than any test does.
            let ended = try await daemon.connect().wait(job)
            #expect(ended["state"] == "failed")
            #expect(ended["error"]?["kind"] == "deadline")
            try await daemon.stop()
        }
    }

    @Test func suspendedQueue_staysSuspended_whenKilled() async throws {
        try await Household.with { household in
            var daemon = try await household.start()
            let wire = try daemon.connect()
            _ = try await wire.call("queue.set", ["queue": "held", "concurrency": 2, "suspended": true])
            let job = try await wire.submit(.value(1, ["queue": "held"]))
            try await daemon.crash()
            daemon = try await household.start()
            let after = try daemon.connect()
            let queues = try await after.call("queue.list")["queues"]?.array ?? []
            #expect(
                queues.contains([
                    "queue": "held", "concurrency": 2, "perUser": 2, "startRate": nil, "byteRate": nil,
                    "suspended": true,
                    "scheduled": 0, "held": 0, "queued": 1, "running": 0,
                ]), "\(queues)")
            _ = try await after.call("queue.set", ["queue": "held", "suspended": false])
            #expect(try await after.wait(job)["result"] == 1)
            try await daemon.stop()
        }
    }

    private typealias Reply = GuidedOrigin.Reply

    @Test func timer_keepsItsBeginning_overCrashes() async throws {
        try await Household.with { household in
            var (daemon, wire) = try await household.serve(configuration: "queues:\n  default: 1\n")
            // However long the restarts take, the first timers run on after them, and the others are over at some time.
            let running = try await wire.submit(.timer(3600, ["watch": true]))
            try await wire.state("running", of: running)
            let link: JSON = ["then": ["source": ["type": "timer", "seconds": 2]]]
            let list = try await wire.submit([
                "source": ["type": "list", "jobs": [.timer(2), .value(1, ["then": [link]])]]
            ])
            let id = try await wire.submit(.timer(2, ["watch": true]))
            try await wire.state("running", of: id)
            // Earlier writes of the store are on disk once this one is.
            _ = try await wire.submit(.value(1))
            let began = try await wire.call("job.get", .job(id))["startedAt"]
            for _ in 0..<2 {
                try await daemon.crash()
                (daemon, wire) = try await household.serve(configuration: "queues:\n  default: 1\n")
                #expect(try await wire.call("job.get", .job(running))["state"] == "running", "it waits for no slot")
            }
            let job = try await wire.wait(id)
            #expect(job["state"] == "succeeded")
            #expect(job["outcomes"]?[0]?["startedAt"] == began)
            #expect(job["outcomes"]?[0]?["attempts"] == 1)
            let children = try await wire.wait(list)["result"]?.array
            #expect(children == [["ok": true, "value": nil], ["ok": true, "value": nil]])
            try await daemon.stop()
        }
    }
}
