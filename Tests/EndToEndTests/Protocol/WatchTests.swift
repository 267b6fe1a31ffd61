import JobModel
import TestOrigin
import Testing

/// Watching: which notifications are sent, in which order, to which clients.
@Suite struct WatchTests {
    /// The lines about `job` up to its terminal state.
    private func story(_ wire: Wire, of job: Int, watch: String) async throws -> [Wire.Line] {
        var lines: [Wire.Line] = []
        while true {
            let line = try await wire.next("news of job \(job)") { $0.job == job && $0.watch == watch }
            lines.append(line)
            if let state = line.state, ["succeeded", "failed", "cancelled"].contains(state) { return lines }
        }
    }

    @Test func submit_answersFirst_whenItIsWatched() async throws {
        try await Daemon.run { _, wire in
            for _ in 0..<20 {
                let id = wire.send("job.submit", .value(1, ["watch": true]))
                let first = try #require(try await wire.next())
                #expect(first.id == JSON(id))
                let job = try #require(first.json["result"]?["job"]?.int)
                let watch = try #require(first.json["result"]?["watch"]?.string)
                let lines = try await story(wire, of: job, watch: watch)
                #expect(lines.map(\.state) == ["running", "succeeded"])
                #expect(lines.map { $0.json["params"]?["seq"] } == [1, 2])
                #expect(lines.last?.json["params"]?["snapshot"]?["result"] == 1)
            }
            // Nothing about any of them follows its terminal state.
            _ = try await wire.call("server.info")
            #expect(wire.waiting.isEmpty)
        }
    }

    @Test func states_areAllTold_whenChainRuns() async throws {
        try await Daemon.run { _, wire in
            let answer = try await wire.call(
                "job.submit",
                [
                    "source": ["type": "timer", "seconds": 0.01],
                    "then": [
                        ["then": ["source": ["type": "timer", "seconds": 0.01]]],
                        ["fail": ["return": "skipped"]],
                        ["then": ["throw": ["kind": "mine", "message": "Thrown."]]],
                        ["both": ["return": "{{error/kind}}"]],
                    ],
                    "watch": true,
                ])
            let job = try #require(answer["job"]?.int)
            let lines = try await story(wire, of: job, watch: answer["watch"]?.string ?? "")
            let states = lines.filter { $0.method == "job.state" }
            #expect(states.map(\.state) == ["running", "running", "running", "running", "succeeded"])
            #expect(states.map { $0.json["params"]?["snapshot"]?["link"] } == [0, 1, 3, 4, 4])
            let seqs = lines.compactMap { $0.json["params"]?["seq"]?.int }
            #expect(seqs == Array(1...lines.count))
            #expect(states.last?.json["params"]?["snapshot"]?["result"] == "mine")
        }
    }

    @Test func watch_givesSnapshots_whenItBegins() async throws {
        try await Daemon.run { _, wire in
            let done = try await wire.submit(.value(1, ["tags": ["t"]]))
            _ = try await wire.wait(done)
            let running = try await wire.submit(.timer(1000, ["tags": ["t"]]))
            let delayed = try await wire.submit(.value(1, ["tags": ["t"], "delay": 1000]))
            func jobs(_ params: JSON) async throws -> [Int?] {
                let answer = try await wire.call("job.watch", params)
                #expect(answer["truncated"] == nil)
                return answer["jobs"]?.array?.map { $0["job"]?.int } ?? []
            }
            #expect(try await jobs(["job": JSON(done)]) == [done])
            #expect(try await jobs(["jobs": [JSON(delayed), JSON(done), JSON(running)]]) == [delayed, done, running])
            #expect(Set(try await jobs(["tag": "t"])) == [running, delayed])
            #expect(Set(try await jobs(["all": true])) == [running, delayed])
            #expect(try await jobs(["tag": "other"]) == [])
        }
    }

    @Test func watch_isTruncated_whenThereAreMoreThanThousand() async throws {
        try await Daemon.run { _, wire in
            for number in 0..<1001 { wire.send("job.submit", .value(JSON(number), ["delay": 1000])) }
            for number in 1...1001 { _ = try await wire.result(number) }
            let answer = try await wire.call("job.watch", ["all": true])
            #expect(answer["jobs"]?.array?.count == 1000)
            #expect(answer["truncated"] == true)
        }
    }

    @Test func watch_coversLaterJobs_byTagAndAll() async throws {
        try await Daemon.run { daemon in
            let (wire, other) = (try daemon.connect(), try daemon.connect())
            let tag = try #require(try await wire.call("job.watch", ["tag": "t"])["watch"]?.string)
            let all = try #require(try await wire.call("job.watch", ["all": true])["watch"]?.string)
            #expect(tag != all)
            let plain = try await other.submit(.value(1))
            let tagged = try await other.submit(.value(2, ["tags": ["x", "t"]]))
            for (job, watch) in [(plain, all), (tagged, all), (tagged, tag)] {
                let lines = try await story(wire, of: job, watch: watch)
                #expect(lines.compactMap(\.state).suffix(2) == ["running", "succeeded"])
                let seqs = lines.compactMap { $0.json["params"]?["seq"]?.int }
                #expect(seqs == Array(1...lines.count))
            }
            _ = try await wire.call("server.info")
            #expect(wire.waiting.isEmpty, "a job without the tag is not told to the tag's watch")
        }
    }

    @Test func watch_tellsOfChildren_onlyWhenAsked() async throws {
        try await Daemon.run { _, wire in
            let spec: JSON = ["source": ["type": "list", "jobs": [.value(1), .value(2)]]]
            let without = try #require(try await wire.call("job.submit", spec.with(["watch": true]))["job"]?.int)
            while true {
                let line = try await wire.next("news") { $0.method == "job.state" }
                #expect(line.job == without)
                if line.state == "succeeded" { break }
            }
            let tag = try #require(
                try await wire.call("job.watch", ["tag": "family", "children": true])["watch"]?.string)
            let parent = try await wire.submit(spec.with(["tags": ["family"]]))
            var states: [Int: [String]] = [:]
            while states[parent]?.last != "succeeded" {
                let line = try await wire.next("news of the family") { $0.state != nil && $0.watch == tag }
                states[line.job ?? 0, default: []].append(line.state ?? "")
            }
            #expect(states.count == 3)
            for (job, states) in states where job != parent {
                #expect(states.suffix(2) == ["running", "succeeded"], "\(job)")
            }
        }
    }

    @Test func watch_showsChildrenThatAreThere_whenAsked() async throws {
        try await Daemon.run { _, wire in
            _ = try await wire.call("job.watch", ["all": true, "children": true])
            let inner: JSON = ["source": ["type": "list", "jobs": [.timer(1000)]]]
            let parent = try await wire.submit([
                "source": ["type": "list", "jobs": [.value(1), inner, .timer(1000)]], "tags": ["family"],
            ])
            // The grandchild runs, and the first child is over.
            _ = try await wire.next("grandchild") { $0.job == parent + 4 && $0.state == "running" }
            _ = try await wire.call("job.wait", .job(parent + 1))
            let open: [JSON] = [2, 3, 4].map { JSON(parent + $0) }
            for selection: JSON in [["job": JSON(parent)], ["tag": "family"], ["all": true]] {
                let plain = try await wire.call("job.watch", selection)
                #expect(plain["jobs"]?.array?.compactMap { $0["job"] } == [JSON(parent)])
                let watch = try await wire.call("job.watch", selection.with(["children": true]))
                #expect(watch["jobs"]?.array?.compactMap { $0["job"] } == [JSON(parent)] + open, "\(selection)")
                #expect(watch["truncated"] == nil)
            }
        }
    }

    @Test func progress_isMergedByInterval_andTellsHowFar() async throws {
        try await GuidedOrigin.withDaemon { origin, _, wire in
            let job = try await wire.submit(.download(origin.url("/file"), to: "file"))
            let exchange = try await origin.exchange("/file")
            let quick = try #require(
                try await wire.call("job.watch", ["job": JSON(job), "interval": 0.02])["watch"]?.string)
            let slow = try #require(
                try await wire.call("job.watch", ["job": JSON(job), "interval": 3600])["watch"]?.string)
            exchange.sendHead("200 OK", [("Content-Length", "100000"), ("ETag", "\"v1\"")])
            var last = 0
            for part in 0..<5 {
                exchange.send(Array(Sample.content[(part * 20_000)..<(part * 20_000 + 10_000)]))
                let target = part * 20_000 + 10_000
                while last < target {
                    let line = try await wire.next("progress") { $0.method == "job.progress" }
                    #expect(line.watch == quick, "the interval of the other has not passed")
                    let params = try #require(line.json["params"])
                    #expect(params["link"] == 0)
                    #expect(params["links"] == 0)
                    #expect(params["coalesced"]?.int ?? -1 >= 0)
                    let progress = try #require(params["progress"])
                    #expect(
                        Set(progress.object?.names ?? [])
                            == ["completed", "total", "unit", "fraction", "rate", "eta"])
                    #expect(progress["unit"] == "bytes")
                    #expect(progress["total"] == 100_000)
                    let completed = try #require(progress["completed"]?.int)
                    #expect(completed >= last)
                    #expect(abs((progress["fraction"]?.double ?? -1) - Double(completed) / 100_000) < 0.001)
                    last = completed
                }
                exchange.send(Array(Sample.content[target..<(target + 10_000)]))
            }
            exchange.finish()
            for watch in [quick, slow] {
                let line = try await wire.next("end") { $0.state == "succeeded" && $0.watch == watch }
                #expect(line.json["params"]?["snapshot"]?["result"]?["size"] == 100_000)
            }
        }
    }

    @Test func progress_countsChildren_whenListRuns() async throws {
        try await GuidedOrigin.withDaemon { origin, _, wire in
            let jobs = (0..<4).map { JSON.fetch(origin.url("/\($0)")) }
            let answer = try await wire.call(
                "job.submit", ["source": ["type": "list", "jobs": .array(jobs)], "watch": true])
            let job = try #require(answer["job"]?.int)
            var exchanges: [GuidedOrigin.Exchange] = []
            for number in 0..<4 { exchanges.append(try await origin.exchange("/\(number)")) }
            // Bodies without bytes: the unit is finished children.
            exchanges[0].answer(.status("204 No Content"))
            let one = try await wire.next("progress") { $0.method == "job.progress" && $0.job == job }
            #expect(one.json["params"]?["progress"]?["unit"] == "jobs", "\(one)")
            #expect(one.json["params"]?["progress"]?["completed"] == 1)
            #expect(one.json["params"]?["progress"]?["total"] == 4)
            #expect(one.json["params"]?["progress"]?["fraction"] == 0.25)
            // As soon as one child reports bytes, the unit is bytes.
            exchanges[1].answer(.text("12345"))
            exchanges[2].answer(.text("12345"))
            let bytes = try await wire.next("progress in bytes") {
                $0.method == "job.progress" && $0.json["params"]?["progress"]?["unit"] == "bytes"
            }
            #expect([5, 10].contains(bytes.json["params"]?["progress"]?["completed"]?.int))
            exchanges[3].answer(.text("12345"))
            try await wire.state("succeeded", of: job)
        }
    }

    @Test func unwatch_endsNotifications_andFreesName() async throws {
        try await Daemon.run { daemon, wire in
            let all = try #require(try await wire.call("job.watch", ["all": true])["watch"])
            #expect(try await wire.call("job.unwatch", ["watch": all]) == [:])
            _ = try await wire.succeed(.value(1))
            #expect(wire.waiting.isEmpty)
            try await wire.eventually { $0["watches"] == 0 }
            // Like one that has ended by itself, it may be ended again.
            #expect(try await wire.call("job.unwatch", ["watch": all]) == [:])
            let refusal = try await wire.refusal("job.unwatch", ["watch": "w99"])
            #expect(refusal.code == -32001)
            #expect(refusal.kind == "not-found")
            // A watch belongs to its connection.
            let other = try await wire.call("job.watch", ["all": true])["watch"] ?? .null
            #expect(try await daemon.connect().refusal("job.unwatch", ["watch": other]).code == -32001)
        }
    }

    @Test func nothingOfAWatch_followsTheAnswerThatEndsIt_whileJobsChange() async throws {
        try await Daemon.run { daemon in
            let (wire, others) = (try daemon.connect(), try daemon.connect())
            let kept = try await wire.call("job.watch", ["all": true])["watch"]?.string
            for round in 0..<10 {
                let watch = try #require(try await wire.call("job.watch", ["all": true])["watch"]?.string)
                // Jobs begin and end before, while and after the watch is ended.
                let count = 100
                let submissions = (0..<count).map { others.send("job.submit", .value(JSON($0))) }
                for submission in submissions.prefix(round * 10) { _ = try await others.result(submission) }
                let unwatch = JSON(wire.send("job.unwatch", ["watch": .string(watch)]))
                var (ended, isUnwatched) = (0, false)
                // The other watch reports all of them, so all notifications have arrived then.
                while ended < count || !isUnwatched {
                    let line = try #require(try await wire.next())
                    if line.id == unwatch { isUnwatched = true }
                    if line.watch == kept, line.state == "succeeded" { ended += 1 }
                    #expect(line.watch != watch || !isUnwatched, "\(line.text)")
                }
                for submission in submissions.dropFirst(round * 10) { _ = try await others.result(submission) }
            }
            try await wire.eventually { $0["watches"] == 1 }
        }
    }

    @Test func watchOfFixedJobs_endsItself_withTheLastEnd() async throws {
        try await Daemon.run { _, wire in
            let delayed = try await wire.submit(.value(1, ["delay": 1000]))
            let done = try await wire.submit(.value(2))
            _ = try await wire.wait(done)
            let submitted = try await wire.call("job.submit", .value(1, ["watch": true]))
            try await wire.state("succeeded", of: submitted["job"]?.int ?? 0)
            let both = try await wire.call("job.watch", ["jobs": [JSON(delayed), JSON(done)]])["watch"]
            let ended = try await wire.call("job.watch", .job(done))["watch"]
            try await wire.eventually { $0["watches"] == 1 }
            _ = try await wire.call("job.cancel", .job(delayed))
            try await wire.state("cancelled", of: delayed)
            try await wire.eventually { $0["watches"] == 0 }
            for watch in [submitted["watch"], both, ended] {
                #expect(try await wire.call("job.unwatch", ["watch": watch ?? .null]) == [:])
            }
            for never in ["w4", "w0", "w-1", "w", "x1", "w01"] as [JSON] {
                #expect(try await wire.refusal("job.unwatch", ["watch": never]).code == -32001)
            }
            #expect(try await wire.succeed(.value(2)) == 2)
        }
    }

    @Test func watchedSubmissions_areAllServed_howeverManyArePipelined() async throws {
        let count = 4000
        try await Daemon.run(configuration: "limits:\n  memoryPerUser: 8388608\n") { _, wire in
            for number in 0..<count { wire.send("job.submit", .value(JSON(number), ["watch": true])) }
            var (created, ended) = (0, 0)
            while ended < count {
                let line = try #require(try await wire.next())
                #expect(line.json["error"] == nil, "\(line)")
                if line.json["result"]?["created"] == true { created += 1 }
                if line.state == "succeeded" { ended += 1 }
            }
            #expect(created == count)
            try await wire.eventually { $0["watches"] == 0 }
        }
    }

    @Test func watchedSubmission_waits_whileTooManyWatchesAreOpen() async throws {
        try await Daemon.run(configuration: "limits:\n  inFlight: 3\n") { daemon in
            let (wire, other) = (try daemon.connect(), try daemon.connect())
            for _ in 0..<5 { wire.send("job.submit", .timer(1000, ["watch": true])) }
            for job in 1...3 { #expect(try await wire.answer(JSON(job))["result"]?["job"]?.int == job) }
            try await other.eventually { $0["watches"] == 3 && $0["totals"]?["submitted"] == 3 }
            for job in 1...5 {
                try await other.eventually { ($0["totals"]?["submitted"]?.int ?? 0) >= job }
                _ = try await other.call("job.cancel", .job(job))
                try await wire.state("cancelled", of: job)
            }
            for id in 4...5 { #expect(try await wire.answer(JSON(id))["result"]?["job"]?.int == id) }
        }
    }
}
