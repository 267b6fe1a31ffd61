import JobModel
import Testing

/// Queues: the order of starts, and which jobs block others.
@Suite struct QueueTests {

    @Test func concurrency_boundsWhatRuns_andCanChange() async throws {
        try await GuidedOrigin.run { origin in
            try await Daemon.run(configuration: "queues:\n  default: 16\n  q: {concurrency: 2, perUser: 2}\n") {
                _, wire in
                for number in 0..<6 { _ = try await wire.submit(.fetch(origin.url("/\(number)"), ["queue": "q"])) }
                func running() async throws -> JSON? {
                    try await wire.call("queue.list")["queues"]?.array?.first { $0["queue"] == "q" }?["running"]
                }
                var exchanges = [try await origin.exchange("/0"), try await origin.exchange("/1")]
                #expect(try await running() == 2)
                _ = try await wire.call("queue.set", ["queue": "q", "concurrency": 4, "perUser": 4])
                exchanges += [try await origin.exchange("/2"), try await origin.exchange("/3")]
                #expect(try await running() == 4)
                _ = try await wire.call("queue.set", ["queue": "q", "concurrency": 1])
                for exchange in exchanges[..<3] { exchange.answer(.text("x")) }
                try await wire.eventually { $0["jobs"]?["succeeded"] == 3 }
                #expect(try await running() == 1)
                #expect(origin.requests.count == 4)
                exchanges[3].answer(.text("x"))
                try await origin.exchange("/4").answer(.text("x"))
                try await origin.exchange("/5").answer(.text("x"))
                try await wire.eventually { $0["jobs"]?["succeeded"] == 6 }
            }
        }
    }

    // MARK: - Hosts

    @Test func hostLimit_holdsOverAllQueuesAndLinks_andSpellings() async throws {
        try await GuidedOrigin.withDaemon(
            configuration: "http:\n  perHost: 1\nqueues:\n  default: 5\n  other: 5\n"
        ) { origin, _, wire in
            let first = try await wire.submit(.fetch(origin.url("/1", host: "localhost")))
            let held = try await origin.exchange("/1")
            let second = try await wire.submit(.fetch(origin.url("/2", host: "LOCALHOST"), ["queue": "other"]))
            let third = try await wire.submit(
                .value(
                    1,
                    ["then": [["then": ["source": ["type": "url", "url": origin.url("/3", host: "localhost.")]]]]]))
            // The same machine by another name is another host.
            let fourth = try await wire.submit(.fetch(origin.url("/4")))
            try await origin.exchange("/4").answer(.text("4"))
            #expect(try await wire.wait(fourth)["state"] == "succeeded")
            #expect(origin.requests.map(\.path) == ["/1", "/4"])
            held.answer(.text("1"))
            #expect(try await wire.wait(first)["state"] == "succeeded")
            for _ in 0..<2 { try await origin.exchange().answer(.text("x")) }
            for job in [second, third] { #expect(try await wire.wait(job)["state"] == "succeeded") }
        }
    }

    @Test func queueThatIsOneTooMany_isRefused_andNotStored() async throws {
        try await Household.with { household in
            let (daemon, wire) = try await household.serve()
            for number in 1..<1000 { _ = wire.send("queue.set", ["queue": .string("q\(number)")]) }
            for number in 1..<1000 { _ = try await wire.result(number) }
            #expect(try await wire.refusal("queue.set", ["queue": "more"]).code == -32003)
            #expect(try await wire.call("queue.set", ["queue": "q1", "concurrency": 3])["concurrency"] == 3)
            try await daemon.stop()
            let next = try await household.start()
            let queues = try await next.connect().call("queue.list")["queues"]?.array ?? []
            #expect(queues.count == 1000)
            #expect(!queues.contains { $0["queue"] == "more" })
            try await next.stop()
        }
    }
}
