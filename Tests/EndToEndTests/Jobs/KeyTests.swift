import JobModel
import Testing

/// Keys make submission idempotent, and finished jobs are removed in time.
@Suite struct KeyTests {
    @Test func sameSpec_joins_whateverTheOrderOfItsMembers() async throws {
        try await Daemon.run { daemon in
            let wire = try daemon.connect()
            let first = try await wire.call("job.submit", .value(["a": 1, "b": [1.5]], ["key": "k", "tags": ["t"]]))
            #expect(first["created"] == true)
            wire.sendLine(
                #"{"params":{"tags":["t"],"key":"k","source":{"value":{"b":[1.5],"a":1},"type":"value"}},"method":"job.submit","id":"x","jsonrpc":"2.0"}"#
            )
            let second = try await wire.answer("x")["result"]
            #expect(second?["job"] == first["job"])
            #expect(second?["created"] == false)
            _ = try await wire.wait(first["job"]?.int ?? 0)
            // The key matches the finished job too, and `watch` is not part of the spec.
            let third = try await wire.call(
                "job.submit", .value(["a": 1, "b": [1.5]], ["key": "k", "tags": ["t"], "watch": true]))
            #expect(third["job"] == first["job"])
            #expect(third["state"] == "succeeded")
            #expect(third["created"] == false)
            #expect(third["watch"]?.string != nil)
            #expect(try await wire.call("server.stats")["totals"]?["submitted"] == 1)
        }
    }

    @Test func otherSpec_isConflict_untilJobIsRemoved() async throws {
        try await Daemon.run { daemon in
            let wire = try daemon.connect()
            let id = try await wire.submit(.value(1, ["key": "k"]))
            for spec in [
                JSON.value(2, ["key": "k"]), .value(1, ["key": "k", "label": "l"]),
                .value(1, ["key": "k", "priority": 0]),
            ] {
                let refusal = try await wire.refusal("job.submit", spec)
                #expect(refusal.code == -32006)
                #expect(refusal.kind == "key-conflict")
                #expect(refusal.data["job"]?.int == id)
            }
            #expect(try await wire.call("job.submit", .value(1, ["key": "other"]))["created"] == true)
            _ = try await wire.wait(id)
            _ = try await wire.call("job.remove", .job(id))
            let again = try await wire.call("job.submit", .value(2, ["key": "k"]))
            #expect(again["created"] == true)
            #expect(again["job"]?.int != id)
        }
    }

    @Test func key_holds_acrossRestarts() async throws {
        try await Household.with { household in
            var daemon = try await household.start()
            let id = try await daemon.connect().submit(.value(1, ["key": "k", "delay": 1000]))
            try await daemon.crash()
            daemon = try await household.start()
            let wire = try daemon.connect()
            let joined = try await wire.call("job.submit", .value(1, ["key": "k", "delay": 1000]))
            #expect(joined["job"]?.int == id)
            #expect(joined["created"] == false)
            #expect(try await wire.refusal("job.submit", .value(2, ["key": "k"])).data["job"]?.int == id)
            try await daemon.stop()
        }
    }

    @Test func key_makesOneJob_whenManySubmitAtOnce() async throws {
        try await Daemon.run { daemon in
            var wires: [Wire] = []
            for _ in 0..<8 { wires.append(try daemon.connect()) }
            for wire in wires {
                var lines = ""
                for number in 1...50 {
                    lines +=
                        Wire.request(number, "job.submit", .value(JSON(number), ["key": .string("k\(number)")])) + "\n"
                }
                wire.send(raw: lines)
            }
            var jobs: [Int: Set<Int>] = [:]
            var created = 0
            for wire in wires {
                for number in 1...50 {
                    let answer = try await wire.result(number)
                    jobs[number, default: []].insert(try #require(answer["job"]?.int))
                    if answer["created"] == true { created += 1 }
                }
            }
            #expect(jobs.values.allSatisfy { $0.count == 1 })
            #expect(created == 50)
            #expect(try await wires[0].call("server.stats")["totals"]?["submitted"] == 50)
        }
    }

    @Test func key_joinsWithinOneBatch() async throws {
        try await Daemon.run { daemon in
            let wire = try daemon.connect()
            let requests = (1...3).map { Wire.request($0, "job.submit", .value($0 == 3 ? 2 : 1, ["key": "k"])) }
            wire.sendLine("[" + requests.joined(separator: ",") + "]")
            let answers = try await wire.next()?.json.array ?? []
            func answer(_ id: JSON) -> JSON? { answers.first { $0["id"] == id } }
            #expect(answer(1)?["result"]?["created"] == true)
            #expect(answer(2)?["result"]?["created"] == false)
            #expect(answer(2)?["result"]?["job"] == answer(1)?["result"]?["job"])
            #expect(answer(3)?["error"]?["code"] == -32006)
        }
    }

    // MARK: - Retention

    @Test func finishedJobs_areRemoved_whenTheyAreTooMany() async throws {
        try await GuidedOrigin.run({ _, _ in .init(body: [UInt8](repeating: 1, count: 100_000)) }) { origin in
            try await Household.with { household in
                var daemon = try await household.start()
                var wire = try daemon.connect()
                let large = try await wire.submit(.fetch(origin.url("/")))
                _ = try await wire.wait(large)
                let list = try await wire.submit(["source": ["type": "list", "jobs": [.value(1)]]])
                _ = try await wire.wait(list)
                let open = try await wire.submit(.value(1, ["delay": 1000]))
                let last = try await wire.submit(.value(2, ["key": "k"]))
                _ = try await wire.wait(last)
                #expect(!Files.names(in: daemon.state + "/bodies").isEmpty)
                try await daemon.stop()
                // It is purged right after a start and at least once a minute.
                daemon = try await household.start(configuration: "retention:\n  count: 1\n")
                wire = try daemon.connect()
                try await wire.eventually { $0["jobs"]?["succeeded"] == 1 }
                for gone in [large, list] { #expect(try await wire.refusal("job.get", .job(gone)).code == -32001) }
                for kept in [open, last] { _ = try await wire.call("job.get", .job(kept)) }
                #expect(try await wire.call("job.list")["jobs"]?.array?.count == 2)
                try await daemon.stop()
                #expect(Files.names(in: daemon.state + "/bodies").isEmpty)
            }
        }
    }

    @Test func finishedJobs_areRemoved_whenTheyAreTooOld() async throws {
        try await Household.with { household in
            var daemon = try await household.start()
            var wire = try daemon.connect()
            let old = try await wire.submit(.value(1, ["key": "k"]))
            _ = try await wire.wait(old)
            let open = try await wire.submit(.value(1, ["delay": 1000]))
            try await daemon.stop()
            daemon = try await household.start(configuration: "retention:\n  age: 0\n")
            wire = try daemon.connect()
            try await wire.eventually { $0["jobs"]?["succeeded"] == 0 }
            #expect(try await wire.refusal("job.get", .job(old)).code == -32001)
            _ = try await wire.call("job.get", .job(open))
            #expect(
                try await wire.call("job.submit", .value(2, ["key": "k"]))["created"] == true, "the key is free again")
            try await daemon.stop()
        }
    }
}
