import JobModel
import Testing

/// Lists, `each` and races.
@Suite struct ListSourceTests {
    private func list(_ jobs: [JSON], _ more: [String: JSON] = [:]) -> JSON {
        let source: JSON = ["type": "list", "jobs": .array(jobs)]
        return ["source": source.with(more)]
    }

    @Test func settledList_givesEveryOutcome_inOrder() async throws {
        try await Daemon.run { _, wire in
            let job = try await wire.run(list([.timer(0.2), .failure("mine"), .value("last")]))
            #expect(job["state"] == "succeeded")
            let result = try #require(job["result"]?.array)
            #expect(result.count == 3)
            #expect(result[0] == ["ok": true, "value": nil])
            #expect(result[1]["ok"] == false)
            #expect(result[1]["error"]?["kind"] == "mine")
            #expect(result[2] == ["ok": true, "value": "last"])
            #expect(try await wire.succeed(list([])) == [])
        }
    }

    @Test func allList_givesValues_orFirstFailure() async throws {
        try await Daemon.run { _, wire in
            #expect(try await wire.succeed(list([.value(1), .timer(0.1), .value(3)], ["mode": "all"])) == [1, nil, 3])
            #expect(try await wire.succeed(list([], ["mode": "all"])) == [])
            let id = try await wire.submit(list([.timer(1000), .failure("mine"), .timer(1000)], ["mode": "all"]))
            let job = try await wire.wait(id)
            #expect(job["state"] == "failed")
            #expect(job["error"]?["kind"] == "list")
            let children =
                try await wire.call("job.list", ["parent": JSON(id), "order": "oldest"])["jobs"]?.array ?? []
            #expect(job["error"]?["cause"]?["kind"] == "mine")
            #expect(job["error"]?["cause"]?["index"] == 1)
            #expect(job["error"]?["cause"]?["job"] == children[1]["job"])
            #expect(children.map { $0["state"] } == ["cancelled", "failed", "cancelled"])
        }
    }

    @Test func firstList_givesWinner_andCancelsTheRest() async throws {
        try await GuidedOrigin.withDaemon { origin, _, wire in
            let jobs: [JSON] = [.fetch(origin.url("/0")), .failure(), .fetch(origin.url("/2"))]
            let id = try await wire.submit(list(jobs, ["mode": "first"]))
            _ = try await origin.exchange("/0")
            try await origin.exchange("/2").answer(.text("won"))
            let job = try await wire.wait(id)
            #expect(job["result"]?["index"] == 2)
            #expect(job["result"]?["value"]?["body"] == "won")
            try await origin.departure(from: "/0")
            let children =
                try await wire.call("job.list", ["parent": JSON(id), "order": "oldest"])["jobs"]?.array ?? []
            #expect(children.map { $0["state"] } == ["cancelled", "failed", "succeeded"])
        }
    }

    @Test func each_makesChildForEveryItem_inOrder() async throws {
        try await Daemon.run { _, wire in
            let source: JSON = [
                "type": "each", "in": [3, "b", ["c": nil]], "mode": "all",
                "job": [
                    "source": ["type": "value", "value": ["{{index}}", "{{item}}"]], "label": "no {{index}}",
                    "then": [["then": ["return": ["{{input}}", "{{job/label}}"]]]],
                ],
            ]
            let result = try await wire.succeed(["source": source])
            #expect(result == [[[0, 3], "no 0"], [[1, "b"], "no 1"], [[2, ["c": nil]], "no 2"]])
            let empty = try await wire.succeed(["source": ["type": "each", "in": [], "job": .value(1)]])
            #expect(empty == [])
        }
    }

    @Test func listConcurrency_boundsChildrenThatRun() async throws {
        try await GuidedOrigin.withDaemon { origin, _, wire in
            let jobs = (0..<6).map { JSON.fetch(origin.url("/\($0)")) }
            let id = try await wire.submit(list(jobs, ["concurrency": 2]))
            var running = [try await origin.exchange(), try await origin.exchange()]
            for count in 2..<6 {
                let children = try await wire.call("job.list", ["parent": JSON(id), "state": ["running"]])
                #expect(children["jobs"]?.array?.count == 2)
                #expect(origin.requests.count == count)
                running.removeFirst().answer(.text("x"))
                running.append(try await origin.exchange())
            }
            for exchange in running { exchange.answer(.text("x")) }
            #expect(try await wire.wait(id)["state"] == "succeeded")
        }
    }

    @Test func child_failsAlone_whenItCannotBeMade() async throws {
        try await Daemon.run { _, wire in
            func each(_ mode: String) -> JSON {
                [
                    "source": [
                        "type": "each", "in": [["s": 0], ["s": -1], [:], ["s": 0, "q": "none"]], "mode": .string(mode),
                        "job": [
                            "source": ["type": "timer", "seconds": "{{item/s}}"],
                            "then": [["then": ["return": "{{index}}"]]],
                        ],
                    ]
                ]
            }
            let id = try await wire.submit(each("settled"))
            let settled = try await wire.wait(id)
            #expect(settled["state"] == "succeeded")
            #expect(settled["result"]?.array?.map { $0["ok"] } == [true, false, false, true])
            #expect(settled["result"]?[0]?["value"] == 0)
            #expect(settled["result"]?[1]?["error"]?["kind"] == "invalid")
            #expect(settled["result"]?[1]?["error"]?["index"] == 1)
            #expect(settled["result"]?[2]?["error"]?["kind"] == "template")
            let children =
                try await wire.call("job.list", ["parent": JSON(id), "order": "oldest"])["jobs"]?.array ?? []
            #expect(children.map { $0["state"] } == ["succeeded", "failed", "failed", "succeeded"])
            #expect(children[2]["error"]?["kind"] == "template")
            let first = try await wire.run(each("first"))
            #expect(first["state"] == "succeeded")
            #expect([0, 3].contains(first["result"]?["index"]?.int))
            let all = try await wire.fail(each("all"))
            #expect(all["kind"] == "list")
            #expect([1, 2].contains(all["cause"]?["index"]?.int))
        }
    }

    /// Sums of sizes from servers must not end the daemon.
    @Test(arguments: [
        [Int64.max, Int64.max], [1 << 62, 1 << 62, 1 << 62], [Int64.max, 10],
    ])
    func listsProgress_staysANumber_whenItsDownloadsAnnounceTooMuch(_ lengths: [Int64]) async throws {
        try await GuidedOrigin.withDaemon { origin, _, wire in
            let jobs = lengths.indices.map { index in
                JSON.download(origin.url("/\(index)"), to: "file-\(index)", retry: ["max": 0])
            }
            _ = try await wire.call("job.watch", ["all": true, "children": true, "interval": 0.01])
            let id = try await wire.submit(list(jobs))
            for (index, length) in lengths.enumerated() {
                let exchange = try await origin.exchange("/\(index)")
                exchange.sendHead("200 OK", [("Content-Length", "\(length)")])
                exchange.send([1, 2, 3])
                _ = try await wire.next("progress of \(length) bytes") { line in
                    line.method == "job.progress" && line.job != id || line.state == "failed"
                }
            }
            let progress = try await wire.call("job.get", .job(id))["progress"]
            if progress?["unit"] == "bytes" { #expect(progress?["completed"]?.int ?? -1 >= 0) }
            _ = try await wire.call("job.cancel", .job(id))
            #expect(try await wire.wait(id)["state"] == "cancelled")
        }
    }
}
