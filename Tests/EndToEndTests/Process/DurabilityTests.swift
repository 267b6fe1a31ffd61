import Glibc
import JobModel
import Synchronization
import TestOrigin
import TestSupport
import Testing

/// The state after the daemon was killed without warning.
@Suite struct DurabilityTests {
    // MARK: - Downloads

    @Test func download_resumes_afterKill() async throws {
        try await GuidedOrigin.withHousehold { origin, household in
            var (daemon, wire) = try await household.serve()
            let job = try await wire.submit(.download(origin.url("/file"), to: "file"))
            _ = try await wire.call("job.watch", ["job": JSON(job), "interval": 0.01])
            let first = try await origin.exchange("/file")
            first.sendHead(
                "200 OK", [("Content-Length", "4000000"), ("ETag", "\"v1\""), ("Accept-Ranges", "bytes")])
            first.send(Array(Sample.large[..<3_000_000]))
            _ = try await wire.next("3,000,000 bytes") {
                $0.json["params"]?["progress"]?["completed"]?.int == 3_000_000
            }
            // The store received the file's location before this.
            _ = try await wire.submit(.value(1))
            try await daemon.crash()
            #expect(Files.names(in: daemon.downloads) == ["file.part"])

            (daemon, wire) = try await household.serve()
            let second = try await origin.exchange("/file")
            let start = try #require(second.request.rangeStart, "it does not resume")
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
        try await ScriptedOrigin.run(Misbehaviour.cut(Sample.large, at: .middle, times: 1, etag: tag)) { origin in
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

    // MARK: - Chains

    /// A chain of ten links behind its source, each of which asks the origin.
    func chain(_ origin: GuidedOrigin) -> JSON {
        let links = (1...10).map { JSON.fetching(origin.url("/\($0)")) }
        return ["source": ["type": "url", "url": origin.url("/0")], "then": .array(links)]
    }

    @Test(arguments: [0, 1, 5, 10])
    func chain_runsEachFinishedLinkOnce_whenKilledWithinLink(_ interrupted: Int) async throws {
        let isFirst = Atomic(true)
        try await GuidedOrigin.withHousehold({ request, _ in
            let isHeld = request.path == "/\(interrupted)" && isFirst.exchange(false, ordering: .relaxed)
            return isHeld ? nil : .text(request.path)
        }) { origin, household in
            var daemon = try await household.start()
            let job = try await daemon.connect().submit(chain(origin))
            _ = try await origin.exchange("/\(interrupted)")
            try await daemon.crash()

            daemon = try await household.start()
            let ended = try await daemon.connect().wait(job)
            #expect(ended["state"] == "succeeded", "\(ended)")
            #expect(ended["result"]?["body"] == "/10")
            for link in 0...10 {
                #expect(origin.count("/\(link)") == (link == interrupted ? 2 : 1), "link \(link)")
            }
            #expect(ended["outcomes"]?.array?.map { $0["link"]?.int } == Array(0...10))
            #expect(ended["outcomes"]?.array?.allSatisfy { $0["attempts"] == 1 } == true)
            try await daemon.stop()
        }
    }

    @Test func list_runsEachFinishedChildOnce_whenKilled() async throws {
        let count = 100
        let held = Mutex<Set<String>>(Set((40..<44).map { "/\($0)" }))
        try await GuidedOrigin.withHousehold({ request, _ in
            // Four children are held once; with a concurrency of four nothing else runs then.
            held.withLock { $0.remove(request.path) } == nil ? .text(request.path) : nil
        }) { origin, household in
            var daemon = try await household.start()
            let jobs = (0..<count).map { JSON.fetch(origin.url("/\($0)")) }
            let list: JSON = ["source": ["type": "list", "jobs": .array(jobs), "concurrency": 4]]
            let job = try await daemon.connect().submit(list)
            for number in 40..<44 { _ = try await origin.exchange("/\(number)") }
            try await daemon.crash()

            daemon = try await household.start()
            let wire = try daemon.connect()
            let ended = try await wire.wait(job)
            #expect(ended["state"] == "succeeded", "\(ended["error"] ?? .null)")
            let results = ended["result"]?.array ?? []
            #expect(results.map { $0["value"]?["body"]?.string } == (0..<count).map { "/\($0)" })
            for number in 0..<count {
                let asked = origin.count("/\(number)")
                #expect(asked == ((40..<44).contains(number) ? 2 : 1), "child \(number)")
            }
            let children = try await wire.call("job.list", ["parent": JSON(job), "limit": 1000])
            #expect(children["jobs"]?.array?.count == count, "children are made once")
            try await daemon.stop()
        }
    }
}
