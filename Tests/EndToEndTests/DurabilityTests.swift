import Glibc
import JobModel
import Synchronization
import TestOrigin
import TestSupport
import Testing

/// What is left after the daemon was killed without warning.
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
            // What was on its way counts as answered too.
            for line in try await wire.rest() where line.id != nil {
                answered[try #require(line.id?.int)] = try #require(line.json["result"]?["job"]?.int)
            }
            #expect(answered.count < count, "the daemon was too fast for this test")
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
    private func chain(_ origin: GuidedOrigin) -> JSON {
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

    // MARK: - What waits

    @Test func retry_keepsTimeAndAttempt_whenKilled() async throws {
        try await GuidedOrigin.run({ _, count in count == 0 ? .status("503 Busy") : .text("ok") }) { origin in
            try await Household.with { household in
                var daemon = try await household.start()
                var wire = try daemon.connect()
                let retry: JSON = ["max": 2, "initial": 3, "jitter": false]
                let answer = try await wire.call(
                    "job.submit", .fetch(origin.url("/"), ["retry": retry, "watch": true]))
                let job = try #require(answer["job"]?.int)
                let scheduled = try await wire.state("scheduled", of: job).json["params"]?["snapshot"]
                let time = try #require(Timestamp(rfc3339: scheduled?["notBefore"]?.string ?? ""))
                #expect(scheduled?["attempt"] == 1)
                try await daemon.crash()

                daemon = try await household.start()
                wire = try daemon.connect()
                let now = try await wire.call("job.get", .job(job))
                #expect(now["state"] == "scheduled")
                #expect(now["attempt"] == 1)
                #expect(now["notBefore"] == scheduled?["notBefore"])
                #expect(now["error"]?["http"]?["status"] == 503)
                #expect(origin.count("/") == 1)
                let ended = try await wire.wait(job)
                #expect(ended["state"] == "succeeded")
                #expect(ended["attempt"] == 2)
                let finished = try #require(Timestamp(rfc3339: ended["finishedAt"]?.string ?? ""))
                #expect(finished.seconds(since: time) >= 0, "it did not wait as long as it was to")
                try await daemon.stop()
            }
        }
    }

    @Test func attempt_isNotUsedUp_whenKilledWhileRunning() async throws {
        let requests = Atomic(0)
        try await GuidedOrigin.run({ _, _ in
            // Two attempts are interrupted by kills, then one fails, then one succeeds.
            switch requests.add(1, ordering: .relaxed).newValue {
            case 1, 2: nil
            case 3: .status("503 Busy")
            default: .text("ok")
            }
        }) { origin in
            try await Household.with { household in
                var daemon = try await household.start()
                let retry: JSON = ["max": 1, "initial": 0.01]
                let job = try await daemon.connect().submit(.fetch(origin.url("/"), ["retry": retry]))
                for _ in 0..<2 {
                    _ = try await origin.exchange("/")
                    try await daemon.crash()
                    daemon = try await household.start()
                }
                let ended = try await daemon.connect().wait(job)
                #expect(ended["state"] == "succeeded", "\(ended)")
                #expect(ended["attempt"] == 2)
                try await daemon.stop()
            }
        }
    }

    @Test func jobs_stayAsTheyWere_whenKilled() async throws {
        try await GuidedOrigin.run({ _, _ in Reply(body: [UInt8](repeating: 66, count: 200_000)) }) { origin in
            try await Household.with { household in
                var daemon = try await household.start()
                var wire = try daemon.connect()
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

                daemon = try await household.start()
                wire = try daemon.connect()
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
                        "scheduled": 1, "queued": 0, "running": 0, "succeeded": 2, "failed": 1, "cancelled": 1,
                    ])
                #expect(origin.requests.count == 1, "what is done is not done again")
                try await daemon.stop()
            }
        }
    }

    @Test func bodies_areRemoved_whenTheirJobsAreGone() async throws {
        try await TestOrigin.run { origin in
            origin["/large"] = OriginResource(Sample.content)
            try await Household.with { household in
                var daemon = try await household.start()
                let job = try await daemon.connect().run(.fetch(.string(origin.url("/large"))))
                #expect(job["result"]?["spilled"] == true)
                let bodies = daemon.state + "/bodies"
                let kept = try #require(Files.names(in: bodies).first)
                try await daemon.crash()
                // As a kill between a job's removal and that of its body leaves it.
                try household.directory.write("left over", to: "state/bodies/999-0")
                daemon = try await household.start()
                try await daemon.process.line(containing: "Bodies of removed jobs were left over")
                #expect(Files.names(in: bodies) == [kept])
                try await daemon.stop()
            }
        }
    }

    @Test func cancelledJob_runsItsFinally_whenKilledInIt() async throws {
        let isFirst = Atomic(true)
        try await GuidedOrigin.run({ request, _ in
            request.path == "/clean" && !isFirst.exchange(false, ordering: .relaxed) ? .text("clean") : nil
        }) { origin in
            try await Household.with { household in
                var daemon = try await household.start()
                let wire = try daemon.connect()
                let job = try await wire.submit([
                    "source": ["type": "timer", "seconds": 1000],
                    "then": [
                        ["then": ["return": "never"]],
                        ["finally": ["source": ["type": "url", "url": origin.url("/clean")]]],
                    ],
                ])
                _ = try await wire.call("job.cancel", .job(job))
                _ = try await origin.exchange("/clean")
                try await daemon.crash()
                daemon = try await household.start()
                let ended = try await daemon.connect().wait(job)
                #expect(ended["state"] == "cancelled")
                #expect(origin.count("/clean") == 2)
                try await daemon.stop()
            }
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
                    "queue": "held", "concurrency": 2, "perUser": 1, "suspended": true, "scheduled": 0, "queued": 1,
                    "running": 0,
                ]), "\(queues)")
            _ = try await after.call("queue.set", ["queue": "held", "suspended": false])
            #expect(try await after.wait(job)["result"] == 1)
            try await daemon.stop()
        }
    }

    private typealias Reply = GuidedOrigin.Reply

    @Test func timer_keepsItsBeginning_overCrashes() async throws {
        try await Household.with { household in
            var daemon = try await household.start(configuration: "queues:\n  default: 1\n")
            var wire = try daemon.connect()
            let link: JSON = ["then": ["source": ["type": "timer", "seconds": 2]]]
            let list = try await wire.submit([
                "source": ["type": "list", "jobs": [.timer(2), .value(1, ["then": [link]])]]
            ])
            let id = try await wire.submit(.timer(2, ["watch": true]))
            try await wire.state("running", of: id)
            try await wire.eventually { $0["jobs"]?["running"] == 4 }
            // What the store was given before is on disk once this is.
            _ = try await wire.submit(.value(1))
            let began = try await wire.call("job.get", .job(id))["startedAt"]
            for _ in 0..<2 {
                try await daemon.crash()
                daemon = try await household.start(configuration: "queues:\n  default: 1\n")
                wire = try daemon.connect()
                #expect(try await wire.call("job.get", .job(id))["state"] == "running", "it waits for no slot")
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
