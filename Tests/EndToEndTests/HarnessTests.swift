import JobModel
import Testing

/// The harness itself: its waits end, and its counts are right.
@Suite struct HarnessTests {
    @Test func mailbox_throws_whenNothingComes() async throws {
        let mailbox = Mailbox<Int>()
        await #expect(throws: DeadlinePassed.self) { try await mailbox.next("number", within: 0.05) }
    }

    @Test func mailbox_keepsOthers_whenOneIsWanted() async throws {
        let mailbox = Mailbox<Int>()
        for number in 1...3 { mailbox.put(number) }
        #expect(try await mailbox.next("two") { $0 == 2 } == 2)
        #expect(mailbox.waiting == [1, 3])
        mailbox.close()
        #expect(try await mailbox.next("four") { $0 == 4 } == nil)
    }

    @Test func childProcess_tellsOutputAndEnd_whenItRuns() async throws {
        let (end, output, errors) = try await ChildProcess.run(
            ["/bin/sh", "-c", "read line; echo \"out $line\"; echo err >&2; exit 7"], input: "in\n")
        #expect(end == .code(7))
        #expect(output == "out in\n")
        #expect(errors == "err\n")
    }

    @Test func guidedOrigin_countsRequests_whenDaemonAsks() async throws {
        try await GuidedOrigin.run({ request, count in request.path == "/held" ? nil : .text("\(count)") }) { origin in
            try await Daemon.run { daemon in
                let wire = try daemon.connect()
                #expect(try await wire.succeed(["source": ["type": "url", "url": origin.url("/a")]])["body"] == "0")
                #expect(try await wire.succeed(["source": ["type": "url", "url": origin.url("/a")]])["body"] == "1")
                let job = try await wire.submit(["source": ["type": "url", "url": origin.url("/held")]])
                let exchange = try await origin.exchange("/held")
                _ = try await wire.call("job.cancel", ["job": JSON(job)])
                try await origin.departure(from: "/held")
                #expect(origin.count("/a") == 2)
                exchange.close()
            }
        }
    }
}
