import Glibc
import JobModel
import TestOrigin
import TestSupport
import Testing

/// The state after the daemon was killed without warning.
@Suite struct DurabilityTests {
    @Test func download_resumes_afterKill() async throws {
        try await GuidedOrigin.withHousehold { origin, household in
            var (daemon, wire) = try await household.serve()
            let job = try await origin.beginDownload(at: wire)
            // The store received the file's location before this.
            _ = try await wire.submit(.value(1))
            try await daemon.crash()
            #expect(Files.names(in: daemon.downloads) == ["file.part"])

            (daemon, wire) = try await household.serve()
            let second = try await origin.exchange("/file")
            let start = try #require(second.request.range?.start, "it does not resume")
            #expect((1...3_000_000).contains(start))
            #expect(second.request.headers["if-range"] == "\"v1\"")
            second.answer(.partial(Sample.large, from: start, etag: "\"v1\""))
            let ended = try await wire.wait(job)
            #expect(ended["state"] == "succeeded", "\(ended)")
            #expect(ended["result"]?["resumedFrom"]?.int == start)
            #expect(ended["result"]?["sha256"]?.string == Sample.largeSHA256)
            #expect(ended["attempt"] == 1, "a restart uses up no attempt")
            #expect(try Files.bytes(daemon.downloads + "/file") == Sample.large)
            #expect(Files.names(in: daemon.downloads) == ["file"])
            try await daemon.stop()
        }
    }

    @Test func path_staysThatOfTheJobWhichGoesOnWithIt_afterKill() async throws {
        let tag = "\"v1\""
        try await ScriptedOrigin.run(Misbehaviour.cut(Sample.large, times: 1, etag: tag)) { origin in
            try await Household.with { household in
                let url = JSON.string(origin.url("/file"))
                let retry: JSON = ["max": 1, "initial": 3000, "maxDelay": 3000, "jitter": false]
                var (daemon, wire) = try await household.serve()
                let job = try await wire.submit(.download(url, to: "file", retry: retry, members: ["watch": true]))
                _ = try await wire.state("scheduled", of: job)
                let part = try Files.bytes(daemon.downloads + "/file.part")
                try await daemon.crash()

                (daemon, wire) = try await household.serve()
                let other = try await wire.run(.download(url, to: "file"))
                #expect(other["error"]?["kind"] == "exists", "\(other)")
                #expect(other["error"]?["message"]?.string?.contains("by job \(job)") == true, "\(other)")
                #expect(try Files.bytes(daemon.downloads + "/file.part") == part)
                #expect(try await wire.call("job.cancel", .job(job))["state"] == "cancelled")
                #expect(try await wire.run(.download(url, to: "file"))["state"] == "succeeded")
                #expect(Files.names(in: daemon.downloads) == ["file"])
                try await daemon.stop()
            }
        }
    }

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
