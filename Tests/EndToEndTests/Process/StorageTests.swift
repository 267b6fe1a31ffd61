import Foundation
import JobModel
import TestOrigin
import Testing

/// A disk that accepts no writes: the daemon says so, continues work that needs no writing, and recovers by itself.
@Suite(.enabled(if: Files.exists("/usr/bin/prlimit"))) struct StorageTests {
    /// Lets no file of the daemon grow beyond `size`.
    private func limitFiles(of daemon: Daemon, to size: String) async throws {
        let (end, _, errors) = try await ChildProcess.run(
            ["/usr/bin/prlimit", "--pid", "\(daemon.pid)", "--fsize=\(size):unlimited"])
        try #require(end == .code(0), "\(errors)")
    }

    @Test func submit_isRefused_andTheRestGoesOn_whileNothingCanBeStored() async throws {
        try await GuidedOrigin.run { origin in
            try await Daemon.run(environment: ["WATCHDOG_USEC": "200000"]) { daemon in
                let (wire, first) = (try daemon.connect(), try daemon.connect())
                let running = try await wire.submit(.fetch(origin.url("/")))
                let exchange = try await origin.exchange("/")
                let wait = wire.send("job.wait", .job(running))
                let done = try await wire.submit(.value(1))
                _ = try await wire.wait(done)
                try await limitFiles(of: daemon, to: "0")

                // Its commit failed, and may yet be found in the log: it is answered once that is settled.
                let unsettled = first.send("job.submit", .value(2))
                try await daemon.process.line(containing: "Nothing can be stored")
                try await daemon.status(containing: "Nothing can be stored")
                for _ in 0..<3 { try await daemon.status(containing: "WATCHDOG=1") }
                for _ in 0..<2 {
                    let refusal = try await wire.refusal("job.submit", .value(2))
                    #expect(refusal.code == -32008)
                    #expect(refusal.data["kind"] == "storage")
                }
                #expect(try await wire.call("job.get", .job(done))["result"] == 1)
                #expect(try await wire.call("job.list")["jobs"]?.array?.count == 2)
                // Jobs that end meanwhile are reported once this is stored, and not before.
                exchange.answer(.text("late"))
                #expect(try await wire.refusal("job.submit", .value(3)).code == -32008)
                #expect(try await wire.call("server.stats")["jobs"]?["running"] == 1)
                #expect(!wire.waiting.contains { $0.id == JSON(wait) } && first.waiting.isEmpty)

                try await limitFiles(of: daemon, to: "unlimited")
                try await daemon.process.line(containing: "Storing works again")
                try await daemon.status(containing: "running")
                let settled = try await first.next("answer") { $0.id == JSON(unsettled) }
                #expect(settled.json["error"]?["code"] == -32008)
                #expect(try await wire.result(wait)["result"]?["body"] == "late")
                #expect(try await wire.succeed(.value(4)) == 4)
                #expect(try await wire.call("job.list")["jobs"]?.array?.count == 3, "what was refused left no trace")
            }
        }
    }

    @Test func largeBodies_countAsStored_andTheOldestMakeRoom() async throws {
        let configuration = "limits: {storedPerUser: 250000, inlineResult: 1000}"
        try await GuidedOrigin.withHousehold({ _, _ in .whole(Sample.content, etag: "\"1\"") }) { origin, household in
            var (daemon, wire) = try await household.serve(configuration: configuration)
            let first = try await wire.submit(.fetch(origin.url("/")))
            #expect(try await wire.wait(first)["result"]?["spilled"] == true)
            let second = try await wire.submit(.fetch(origin.url("/")))
            #expect(try await wire.wait(second)["result"]?["spilled"] == true)
            try await daemon.stop()
            (daemon, wire) = try await household.serve(configuration: configuration)
            let third = try await wire.wait(try await wire.submit(.fetch(origin.url("/"))))
            #expect(third["result"]?["spilled"] == true, "\(third)")
            #expect(try await wire.refusal("job.get", .job(first)).code == -32001)
            #expect(try await wire.call("job.get", .job(second))["state"] == "succeeded")
            try await daemon.stop()
            (daemon, wire) = try await household.serve(
                configuration: "limits: {storedPerUser: 90000, inlineResult: 1000}")
            let fourth = try await wire.wait(try await wire.submit(.fetch(origin.url("/"))))
            #expect(fourth["error"]?["kind"] == "too-large", "\(fourth)")
            try await daemon.stop()
        }
    }

    /// A disk that gives back something else than was written to it, while the daemon runs.
    @Test func request_isRefused_andTheRestGoesOn_whenAPageIsDamaged() async throws {
        try await Household.with { household in
            var (daemon, wire) = try await household.serve()
            for number in 0..<400 {
                _ = try await wire.succeed(.value(1, ["label": .string("label \(number) of 400")]))
            }
            try await daemon.stop()
            (daemon, wire) = try await household.serve()
            let path = daemon.state + "/deferd.db"
            let text = try #require(Data(Files.bytes(path)).firstRange(of: Data("label 200 of 400".utf8)))
            let file = try #require(FileHandle(forUpdatingAtPath: path))
            try file.seek(toOffset: UInt64(text.lowerBound / 4096 * 4096))
            try file.write(contentsOf: Data(repeating: 0xA5, count: 100))
            for _ in 0..<2 {
                let refusal = try await wire.refusal("job.get", .job(201))
                #expect(refusal.code == -32008 && refusal.message.contains(path), "\(refusal)")
            }
            try await daemon.process.line(containing: "\(path) is damaged")
            #expect(try await wire.call("job.get", .job(1))["label"] == "label 0 of 400")
            _ = try await wire.succeed(.value(2))
            try await daemon.stop()
        }
    }
}
