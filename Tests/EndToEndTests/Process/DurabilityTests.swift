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
        try await GuidedOrigin.run { origin in
            try await Household.with { household in
                var daemon = try await household.start()
                var wire = try daemon.connect()
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

                daemon = try await household.start()
                wire = try daemon.connect()
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
    }

    @Test func path_staysThatOfTheJobWhichGoesOnWithIt_afterKill() async throws {
        let tag = "\"v1\""
        try await ScriptedOrigin.run(Misbehaviour.cut(Sample.large, at: .middle, times: 1, etag: tag)) { origin in
            try await Household.with { household in
                let url = JSON.string(origin.url("/file"))
                let retry: JSON = ["max": 1, "initial": 3000, "maxDelay": 3000, "jitter": false]
                var daemon = try await household.start()
                var wire = try daemon.connect()
                let job = try await wire.submit(.download(url, to: "file", retry: retry, members: ["watch": true]))
                _ = try await wire.state("scheduled", of: job)
                let part = try Files.bytes(daemon.downloads + "/file.part")
                try await daemon.crash()

                daemon = try await household.start()
                wire = try daemon.connect()
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

    @Test func segments_allGoOn_afterKill() async throws {
        let tag = "\"v1\""
        try await ScriptedOrigin.run({ request, count in
            let steps = Misbehaviour.correct(Sample.large, etag: tag, to: request)
            guard count < 4, case .send(let bytes) = steps[1] else { return steps }
            return [steps[0], .send(Array(bytes.prefix(300_000))), .hold]
        }) { origin in
            try await Household.with { household in
                var daemon = try await household.start()
                var wire = try daemon.connect()
                let job = try await wire.submit(.download(.string(origin.url("/file")), to: "file", ["segments": 4]))
                _ = try await wire.call("job.watch", ["job": JSON(job), "interval": 0.01])
                _ = try await wire.next("4 times 300,000 bytes") {
                    $0.json["params"]?["progress"]?["completed"]?.int == 1_200_000
                }
                try await daemon.crash()
                #expect(Files.names(in: daemon.downloads) == ["file.part"])

                daemon = try await household.start()
                wire = try daemon.connect()
                let ended = try await wire.wait(job)
                #expect(ended["state"] == "succeeded", "\(ended)")
                #expect(ended["result"]?["sha256"]?.string == Sample.largeSHA256)
                #expect(ended["result"]?["resumedFrom"] == 1_200_000)
                #expect(ended["attempt"] == 1, "a restart uses up no attempt")
                #expect(try Files.bytes(daemon.downloads + "/file") == Sample.large)
                #expect(Files.names(in: daemon.downloads) == ["file"])
                // Whatever was asked for twice as a segment was split, it is less than the file.
                let ranges = origin.log.entries.dropFirst(4).map { $0.range }
                #expect(ranges.allSatisfy { $0 != nil })
                for start in [300_000, 1_300_000, 2_300_000, 3_300_000] {
                    #expect(ranges.contains { $0?.start == start }, "\(start) of \(ranges)")
                }
                try await daemon.stop()
            }
        }
    }

    @Test func download_startsAgain_whenFileChangedDuringKill() async throws {
        let new = Array(Sample.large.reversed())
        try await GuidedOrigin.run { origin in
            try await Household.with { household in
                var daemon = try await household.start()
                let job = try await daemon.connect().submit(.download(origin.url("/file"), to: "file"))
                let wire = try daemon.connect()
                _ = try await wire.call("job.watch", ["job": JSON(job), "interval": 0.01])
                let first = try await origin.exchange("/file")
                first.sendHead("200 OK", [("Content-Length", "4000000"), ("ETag", "\"v1\"")])
                first.send(Array(Sample.large[..<3_000_000]))
                _ = try await wire.next("progress") { $0.method == "job.progress" }
                try await daemon.crash()

                daemon = try await household.start()
                let second = try await origin.exchange("/file")
                // As an origin does for an If-Range that does not hold.
                second.answer(.whole(new, etag: "\"v2\""))
                let ended = try await daemon.connect().wait(job)
                #expect(ended["result"]?["resumedFrom"] == 0)
                #expect(try Files.bytes(daemon.downloads + "/file") == new)
                try await daemon.stop()
            }
        }
    }

    // MARK: - Submissions

    @Test(arguments: 0..<3)
    func submissions_areThereOnce_whenAnsweredBeforeKill(_ round: Int) async throws {
        try await Household.with { household in
            var daemon = try await household.start()
            let wire = try daemon.connect()
            let count = 10_000
            // A job says by its tag which request it was.
            var lines = ""
            for number in 1...count {
                lines +=
                    Wire.request(
                        number, "job.submit", .value(JSON(number), ["delay": 1000, "tags": [.string("n\(number)")]]))
                    + "\n"
            }
            wire.send(raw: lines)
            var answered: [Int: Int] = [:]
            // Killed in the middle of the burst.
            while answered.count < 200 * (round + 1) {
                let line = try #require(try await wire.next())
                answered[try #require(line.id?.int)] = try #require(line.json["result"]?["job"]?.int)
            }
            try await daemon.crash()
            // Answers in transit count as answers too.
            for line in try await wire.rest() where line.id != nil {
                answered[try #require(line.id?.int)] = try #require(line.json["result"]?["job"]?.int)
            }
            #expect(Set(answered.values).count == answered.count, "numbers are given once")

            daemon = try await household.start()
            let after = try daemon.connect()
            var stored: [String: [Int]] = [:]
            var next: JSON?
            repeat {
                let page = try await after.call(
                    "job.list",
                    JSON.object(JSONObject()).with(["limit": 1000].merging(next.map { ["after": $0] } ?? [:]) { $1 }))
                for job in page["jobs"]?.array ?? [] {
                    stored[try #require(job["tags"]?[0]?.string), default: []].append(try #require(job["job"]?.int))
                }
                next = page["next"]?.unlessNull
            } while next != nil
            for (number, job) in answered {
                #expect(stored["n\(number)"] == [job], "job \(job) was answered and must be there once")
            }
            #expect(stored.values.allSatisfy { $0.count == 1 })
            // New numbers are new.
            let used = Set(stored.values.flatMap(\.self))
            #expect(!used.contains(try await after.submit(.value(0))))
            try await daemon.stop()
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
        try await GuidedOrigin.run({ request, _ in
            let isHeld = request.path == "/\(interrupted)" && isFirst.exchange(false, ordering: .relaxed)
            return isHeld ? nil : .text(request.path)
        }) { origin in
            try await Household.with { household in
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
    }

    @Test func chain_goesOnFromNextLink_whenKilledBetweenLinks() async throws {
        try await GuidedOrigin.run({ request, _ in .text(request.path) }) { origin in
            try await Household.with { household in
                var daemon = try await household.start()
                let wire = try daemon.connect()
                // Between two links: the next one waits for a place, since its retry is scheduled.
                let links = (1...4).map { JSON.fetching(origin.url("/\($0)")) }
                let answer = try await wire.call(
                    "job.submit",
                    [
                        "source": ["type": "url", "url": origin.url("/0")], "then": .array(links), "watch": true,
                    ])
                let job = try #require(answer["job"]?.int)
                // The outcome of link 2 is stored once link 3 is told to run.
                _ = try await wire.next("link 3") { $0.json["params"]?["snapshot"]?["link"] == 3 }
                try await daemon.crash()
                daemon = try await household.start()
                let ended = try await daemon.connect().wait(job)
                #expect(ended["state"] == "succeeded", "\(ended)")
                for link in 0...2 { #expect(origin.count("/\(link)") == 1, "link \(link)") }
                #expect((1...2).contains(origin.count("/3")))
                #expect((1...2).contains(origin.count("/4")))
                try await daemon.stop()
            }
        }
    }

    @Test func list_runsEachFinishedChildOnce_whenKilled() async throws {
        let count = 100
        let held = Mutex<Set<String>>(Set((40..<44).map { "/\($0)" }))
        try await GuidedOrigin.run({ request, _ in
            // Four children are held once; with a concurrency of four nothing else runs then.
            held.withLock { $0.remove(request.path) } == nil ? .text(request.path) : nil
        }) { origin in
            try await Household.with { household in
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

    @Test func each_inLinkGoesOn_whenKilled() async throws {
        let isFirst = Atomic(true)
        try await GuidedOrigin.run({ request, _ in
            switch request.path {
            case "/doc": .json("[1, 2, 3]")
            case "/2" where isFirst.exchange(false, ordering: .relaxed): nil
            default: .text(request.path)
            }
        }) { origin in
            try await Household.with { household in
                var daemon = try await household.start()
                let base = origin.url("/").string ?? ""
                let job = try await daemon.connect().submit([
                    "source": ["type": "json", "url": origin.url("/doc")],
                    "then": [
                        [
                            "then": [
                                "source": [
                                    "type": "each", "in": "{{input}}", "concurrency": 1,
                                    "job": .fetch(.string(base + "{{item}}")),
                                ]
                            ]
                        ]
                    ],
                ])
                _ = try await origin.exchange("/2")
                try await daemon.crash()
                daemon = try await household.start()
                let ended = try await daemon.connect().wait(job)
                #expect(
                    ended["result"]?.array?.map { $0["value"]?["body"] ?? .null } == ["/1", "/2", "/3"], "\(ended)")
                #expect(["/doc", "/1", "/2", "/3"].map(origin.count) == [1, 1, 2, 1])
                try await daemon.stop()
            }
        }
    }
}
