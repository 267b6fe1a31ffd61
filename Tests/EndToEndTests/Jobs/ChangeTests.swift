import JobModel
import TestOrigin
import Testing

/// Changing one's mind about jobs: one, or many at once.
@Suite struct ChangeTests {
    @Test func runningDownload_isHeld_andGoesOnAtItsPart() async throws {
        try await GuidedOrigin.withHousehold { origin, household in
            var daemon = try await household.start()
            var wire = try daemon.connect()
            let job = try await origin.beginDownload(at: wire)
            let held = try await wire.call("job.hold", .job(job))
            #expect(held["state"] == "held" && held["waitingFor"] == "release" && held["attempt"] == 0)
            #expect(Files.names(in: daemon.downloads) == ["file.part"])
            try await daemon.crash()

            daemon = try await household.start()
            wire = try daemon.connect()
            #expect(try await wire.call("job.get", .job(job))["state"] == "held")
            _ = try await wire.call("job.release", .job(job))
            let second = try await origin.exchange("/file")
            #expect(second.request.range?.start == 3_000_000, "it does not resume")
            second.answer(.partial(Sample.large, from: 3_000_000, etag: "\"v1\""))
            let ended = try await wire.wait(job)
            #expect(ended["result"]?["sha256"]?.string == Sample.largeSHA256, "\(ended)")
            #expect(ended["attempt"] == 1, "a hold uses up no attempt")
            try await daemon.stop()
        }
    }

    @Test func heldDownload_leavesNothing_whenItIsCancelled() async throws {
        try await GuidedOrigin.withDaemon { origin, daemon, wire in
            let job = try await wire.submit(.download(origin.url("/file"), to: "file"))
            _ = try await wire.call("job.watch", ["job": JSON(job), "interval": 0.01])
            let exchange = try await origin.exchange("/file")
            exchange.sendHead("200 OK", [("Content-Length", "4000000"), ("ETag", "\"v1\"")])
            exchange.send(Array(Sample.large[..<1_000_000]))
            _ = try await wire.next("progress") { $0.json["params"]?["progress"]?["completed"]?.int == 1_000_000 }
            _ = try await wire.call("job.hold", .job(job))
            #expect(try await wire.call("job.cancel", .job(job))["state"] == "cancelled")
            // A retry waits for the removal of the part.
            _ = try await wire.call("job.retry", .job(job))
            #expect(try await origin.exchange("/file").request.range?.start == nil)
            #expect(Files.names(in: daemon.downloads) == [])
        }
    }

    @Test func job_takesSettings_beforeItRunsAndWhileItDoes() async throws {
        try await Daemon.run(configuration: "queues: {default: 16, other: 1}") { _, wire in
            let job = try await wire.submit(.timer(1000, ["held": true, "key": "k", "label": "old"]))
            let set = try await wire.call(
                "job.set",
                [
                    "job": JSON(job), "queue": "other", "priority": 7, "tags": ["a", "b"], "label": "new",
                    "notify": true,
                    "deadline": 5000,
                ])
            #expect(set["queue"] == "other" && set["priority"] == 7 && set["tags"] == ["a", "b"])
            #expect(set["label"] == "new" && set["notify"] == true && set["state"] == "held")
            #expect(try await wire.call("job.list", ["tag": "b"])["jobs"]?[0]?["job"]?.int == job)
            let joined = try await wire.call(
                "job.submit", .timer(1000, ["held": true, "key": "k", "label": "old"]))
            #expect(joined["created"] == false, "a key compares what was submitted")
            #expect(try await wire.refusal("job.set", ["job": JSON(job), "queue": "x"]).pointer == "/queue")
            #expect(try await wire.refusal("job.set", ["job": JSON(job), "rate": 5]).pointer == "/rate")
            #expect(try await wire.refusal("job.set", .job(job)).code == -32602)
            _ = try await wire.call("job.release", .job(job))
            try await wire.eventually { $0["jobs"]?["running"] == 1 }
            #expect(try await wire.refusal("job.set", ["job": JSON(job), "priority": 1]).code == -32004)
            let cleared = try await wire.call("job.set", ["job": JSON(job), "label": nil, "tags": nil, "notify": nil])
            #expect(cleared["label"] == nil && cleared["tags"] == nil && cleared["notify"] == nil)
            #expect(try await wire.refusal("job.hold", .job(job)).code == -32004)
        }
    }

    @Test func rate_canChange_whileTheDownloadRuns() async throws {
        try await GuidedOrigin.withDaemon({ _, _ in .whole(Sample.content, etag: "\"1\"") }) { origin, _, wire in
            // It would take a day.
            let job = try await wire.submit(.download(origin.url("/"), to: "file", ["rate": 1]))
            try await wire.eventually { $0["jobs"]?["running"] == 1 }
            let set = try await wire.call("job.set", ["job": JSON(job), "rate": nil])
            #expect(set["source"]?["rate"] == nil)
            #expect(try await wire.wait(job)["result"]?["size"] == 100_000)
        }
    }

    @Test func jobs_areChanged_byIdsAndSelections() async throws {
        try await Daemon.run { _, wire in
            var ids: [JSON] = []
            for number in 0..<1000 {
                let label: JSON = number % 10 == 0 ? "every tenth" : "other"
                ids.append(JSON(try await wire.submit(.value(1, ["held": true, "label": label, "tags": ["t"]]))))
            }
            func count(_ method: String, _ params: JSON) async throws -> JSON { try await wire.call(method, params) }
            let tenth: JSON = ["label": "every ten"]
            #expect(
                try await count("job.cancel", ["select": tenth, "dryRun": true]) == ["count": 100, "skipped": 0])
            #expect(try await count("job.cancel", ["select": tenth]) == ["count": 100, "skipped": 0])
            #expect(
                try await count("job.cancel", ["jobs": [ids[0], ids[1], 99999]]) == ["count": 1, "skipped": 2])
            #expect(
                try await count("job.release", ["select": ["ids": [ids[2], ids[19]]]]) == ["count": 17, "skipped": 1])
            let all: JSON = ["select": ["all": true, "tag": "t"]]
            #expect(try await count("job.release", all) == ["count": 882, "skipped": 118])
            let waited = try await count("job.wait", ["select": ["tag": "t"]])
            #expect(waited == ["succeeded": 899, "failed": 0, "cancelled": 101])
            #expect(try await count("job.retry", ["select": ["state": ["cancelled"]]])["count"] == 101)
            #expect(try await count("job.wait", all) == ["succeeded": 1000, "failed": 0, "cancelled": 0])
            #expect(try await count("job.retry", ["select": ["all": true], "from": "start"])["count"] == 1000)
            _ = try await count("job.wait", all)
            #expect(try await count("job.remove", all) == ["count": 1000, "skipped": 0])
            #expect(try await count("job.remove", all) == ["count": 0, "skipped": 0])
            for refused: JSON in [
                ["select": [:]], ["select": ["state": []]], ["select": ["x": 1]], ["jobs": [1], "job": 1], [:],
                // As a variable of a script that is not set.
                ["select": ["label": ""]], ["select": ["tag": ""]], ["select": ["key": ""]], ["select": ["queue": ""]],
            ] {
                #expect(try await wire.refusal("job.cancel", refused).code == -32602)
            }
        }
    }

    @Test func key_isFree_onceItsJobHasEnded() async throws {
        try await Daemon.run { _, wire in
            let more: [String: JSON] = ["key": "k", "keyUntil": "finished"]
            let first = try await wire.submit(.value(1, more))
            _ = try await wire.wait(first)
            let second = try await wire.submit(.timer(1000, more))
            let refusal = try await wire.refusal("job.retry", ["job": JSON(first), "from": "start"])
            #expect(refusal.code == -32006 && refusal.data["job"]?.int == second)
            _ = try await wire.call("job.cancel", .job(second))
            // In one round, only one of them gets the key.
            let both = try await wire.call("job.retry", ["jobs": [JSON(first), JSON(second)], "from": "start"])
            #expect(both == ["count": 1, "skipped": 1])
            #expect(try await wire.wait(first)["state"] == "succeeded")
        }
    }

    @Test func finallyLink_knowsHowItsJobEnds() async throws {
        try await Daemon.run { _, wire in
            let last: JSON = ["finally": ["source": ["type": "error", "kind": "told", "message": "{{job/outcome}}"]]]
            for (source, outcome) in [
                (["type": "value", "value": 1], "succeeded"),
                (["type": "error", "kind": "x", "message": "m"], "failed"),
            ] as [(JSON, JSON)] {
                let job = try await wire.run(["source": source, "then": [last]])
                #expect(job["state"] == outcome)
                #expect(job["outcomes"]?.array?.last?["error"]?["message"] == outcome)
            }
            let elsewhere: JSON = [
                "source": ["type": "value", "value": 1], "then": [["then": ["return": "{{job/outcome}}"]]],
            ]
            #expect(try await wire.refusal("job.submit", elsewhere).code == -32602)
        }
    }

    // MARK: - Told

    @Test func hook_getsTheObject_ofEachEndThatIsToBeTold() async throws {
        try await Household.with { household in
            let ends = try (2...3).map { try ProgramTests.Witness(in: household.directory, "end\($0)") }
            let script = "echo \"$DEFERD_JOB $(sed s/xxx*/x/)\" > \(ends[0].path.dropLast())$DEFERD_JOB"
            let daemon = try await household.start(
                configuration: "hooks: {finished: [/bin/sh, -c, '\(script)']}",
                flags: ["--instance", "user"])
            let wire = try daemon.connect()
            _ = try await wire.run(.value(1))
            let job = try await wire.submit(.value("secret", ["notify": true]))
            let text = try await ends[0].next() ?? ""
            #expect(text.hasPrefix("\(job) {\"job\":\(job),\"state\":\"succeeded\","))
            #expect(text.hasSuffix("}\n"))
            // A longer object lacks the spec and the result.
            let large = try await wire.submit(
                .value(.string(String(repeating: "x", count: 65_400)), ["notify": true]))
            let object = try #require(try await ends[1].next()).dropFirst("\(large) ".count)
            let members = try JSON(parsing: Array(object.utf8))
            #expect(members["resultSize"] == 65_402 && members["result"] == nil, "\(object)")
            try await daemon.stop()
        }
    }
}
