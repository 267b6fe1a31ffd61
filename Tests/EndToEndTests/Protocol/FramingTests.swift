import JobModel
import TestOrigin
import Testing

/// Lines on the socket: where they end, how long they may be, and what happens when a client disconnects.
@Suite struct FramingTests {
    private static let info = #"{"jsonrpc":"2.0","id":1,"method":"server.info"}"#

    // MARK: - Half-close

    @Test func halfClose_stillGetsAnswers_whenJobsAreWaitedFor() async throws {
        try await GuidedOrigin.run { origin in
            try await Daemon.run { daemon in
                let (wire, other) = (try daemon.connect(), try daemon.connect())
                let job = try await other.submit(.fetch(origin.url("/a")))
                wire.send("job.wait", .job(job))
                wire.send("server.info")
                wire.finishWriting()
                let first = try #require(try await wire.next())
                #expect(first.id == 2, "\(first)")
                let exchange = try await origin.exchange("/a")
                _ = try await other.call("server.info")
                #expect(wire.waiting.isEmpty)
                exchange.answer(.text("done"))
                let rest = try await wire.rest()
                #expect(rest.map(\.id) == [1])
                #expect(rest.first?.json["result"]?["result"]?["body"] == "done")
            }
        }
    }

    @Test func halfClose_stillGetsNotifications_untilWatchedJobsAreOver() async throws {
        try await GuidedOrigin.withDaemon { origin, _, wire in
            wire.send("job.submit", .fetch(origin.url("/a"), ["watch": true]))
            wire.send("job.submit", .fetch(origin.url("/b"), ["watch": true]))
            wire.finishWriting()
            try await origin.exchange("/b").answer(.text("b"))
            try await wire.state("succeeded", of: 2)
            try await origin.exchange("/a").answer(.text("a"))
            let rest = try await wire.rest()
            #expect(rest.last?.state == "succeeded")
            #expect(rest.last?.job == 1)
        }
    }

    @Test func halfClose_endsAtOnce_whenNothingIsOutstanding() async throws {
        try await Daemon.run { _, wire in
            let done = try await wire.submit(.value(1))
            _ = try await wire.wait(done)
            // A watch of a finished job, and a watch of all jobs while none is unfinished.
            _ = try await wire.call("job.watch", .job(done))
            _ = try await wire.call("job.watch", ["all": true])
            wire.finishWriting()
            #expect(try await wire.rest().isEmpty)
        }
    }

    // MARK: - Clients that go

    @Test func goneClient_leavesNothing_whenItWaitedAndWatched() async throws {
        try await Daemon.run { daemon in
            let keeper = try daemon.connect()
            let job = try await keeper.submit(.timer(1000, ["tags": ["t"]]))
            _ = try await keeper.call("server.info")
            let before = try Memory.sockets(of: daemon.pid)
            for _ in 0..<10 {
                let wire = try daemon.connect()
                for _ in 0..<5 { wire.send("job.wait", .job(job)) }
                _ = try await wire.call("job.watch", .job(job))
                _ = try await wire.call("job.watch", ["tag": "t"])
                _ = try await wire.call("job.watch", ["all": true])
                wire.close()
            }
            // It counts a connection no more a moment before the socket is closed.
            try await keeper.eventually {
                $0["connections"] == 1 && $0["watches"] == 0
                    && (try? Memory.sockets(of: daemon.pid)).map { $0 <= before } == true
            }
            #expect(try await keeper.call("job.get", .job(job))["state"] == "running")
        }
    }

    @Test func halfClosedClient_getsEveryAnswer_howeverLateItReads() async throws {
        try await Daemon.run { daemon in
            let (keeper, late) = (try daemon.connect(), try daemon.connect(reads: false))
            let text = String(repeating: "x", count: 900_000)
            let job = try await keeper.submit(.value(.string(text)))
            _ = try await keeper.wait(job)
            // More than the socket has room for.
            let part: JSON = ["job": JSON(job), "offset": 0, "length": 262_144]
            for _ in 0..<5 { late.send("job.result", part) }
            late.finishWriting()
            // The daemon has nothing left to do for it but to wait until it reads.
            for _ in 0..<20 { _ = try await keeper.run(.value(1)) }
            late.startReading()
            let lines = try await late.rest()
            #expect(lines.count == 5)
            #expect(lines.allSatisfy { $0.json["result"]?["data"]?.string?.utf8.count == 349_528 })
            try await keeper.eventually { $0["connections"] == 1 }
        }
    }
}
