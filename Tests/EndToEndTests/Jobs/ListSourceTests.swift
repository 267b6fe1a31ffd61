import JobModel
import Testing

/// Lists, `each` and races.
@Suite struct ListSourceTests {
    private func list(_ jobs: [JSON], _ more: [String: JSON] = [:]) -> JSON {
        let source: JSON = ["type": "list", "jobs": .array(jobs)]
        return ["source": source.with(more)]
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
