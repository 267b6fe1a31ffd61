import JobModel
import Testing

/// No answer is without bounds, and no result is unreadable.
@Suite struct AnswerSizeTests {
    /// The maximum size of a line outside a batch in bytes.
    private let most = 3 << 19

    /// The answer to a call, and the length of its line.
    private func answer(_ wire: Wire, _ method: String, _ params: JSON) async throws -> (JSON, length: Int) {
        let id = JSON(wire.send(method, params))
        let line = try await wire.next("answer to \(method)") { $0.id == id }
        return (line.json, line.text.utf8.count)
    }

    /// All of a result, as `job.result` gives it.
    private func read(_ job: Int, _ wire: Wire) async throws -> [UInt8] {
        var bytes: [UInt8] = []
        while true {
            let piece = try await wire.call("job.result", ["job": JSON(job), "offset": JSON(bytes.count)])
            bytes += try #require(piece["data"]?.string.flatMap(Base64.decode))
            if piece["eof"] == true { return bytes }
        }
    }

    @Test func longResult_isLeftOut_andReadInPieces() async throws {
        let text = "[\"" + String(repeating: "long ", count: 500_000) + "\"]"
        try await GuidedOrigin.run({ _, _ in .json(text) }) { origin in
            try await Daemon.run { daemon in
                let (wire, watcher) = (try daemon.connect(), try daemon.connect())
                _ = try await watcher.call("job.watch", ["all": true])
                let spec: JSON = ["source": ["type": "json", "url": origin.url("/")]]
                let id = try await wire.submit(spec)
                let (waited, length) = try await answer(wire, "job.wait", .job(id))
                #expect(length < 4096)
                for job in [
                    waited["result"], try await wire.call("job.get", .job(id)),
                    try await wire.call("job.list")["jobs"]?[0],
                    try await watcher.state("succeeded", of: id).json["params"]?["snapshot"],
                ] {
                    #expect(job?["state"] == "succeeded")
                    #expect(job?["result"] == nil)
                    #expect(job?["resultSize"] == JSON(text.utf8.count))
                }
                #expect(try await read(id, wire) == Array(text.utf8))
                // `job.get` returns it whole.
                let program = [BuiltProgram.deferctl, "--socket", daemon.socket]
                let url = try #require(origin.url("/").string)
                for arguments in [["json", url], ["result", "\(id)"]] {
                    let (end, output, errors) = try await ChildProcess.run(program + arguments)
                    #expect(end == .code(0), "\(errors)")
                    #expect(output == text + "\n", "\(output.utf8.count) bytes")
                }
                // Inside the daemon it flows on.
                let chain = spec.with(["then": [["then": ["return": ["{{input/0}}"]]], ["then": ["return": 1]]]])
                #expect(try await wire.succeed(chain) == 1)
            }
        }
    }

    @Test func answer_isRefused_whenItIsLongerThanWhatMayWait() async throws {
        let names = (0..<400).map { "  a-queue-with-a-long-name-so-that-the-answer-is-long-\($0): {}\n" }.joined()
        try await Daemon.run(configuration: "limits: {outbound: 65536}\nqueues:\n\(names)") { _, wire async throws in
            #expect(try await wire.refusal("queue.list").code == -32003)
            #expect(try await wire.call("server.info")["name"] == "deferd")
        }
    }

    /// All answers together are far longer than what may wait for the client.
    @Test(arguments: [false, true]) func client_getsAllAnswers_howeverManyItAsksForAtOnce(isHalfClosed: Bool)
        async throws
    {
        try await Daemon.run(configuration: "limits: {outbound: 200000}") { daemon, wire in
            let gate = try await wire.submit(.timer(1000, ["key": "gate"]))
            let text = JSON.string(String(repeating: "y", count: 50_000))
            let done = try await wire.submit(.value(text))
            _ = try await wire.wait(done)
            let waiting: JSON = [
                "source": ["type": "job", "job": JSON(gate)], "then": [["fail": ["return": text]]],
            ]
            var jobs: [Int] = []
            for _ in 0..<50 { jobs.append(try await wire.submit(waiting)) }
            let reader = try daemon.connect()
            for job in jobs { reader.send("job.wait", .job(job)) }
            for _ in 0..<50 { reader.send("job.get", .job(done)) }
            if isHalfClosed { reader.finishWriting() }
            for _ in 0..<50 {
                let line = try await reader.next("answer to job.get") { $0.json["result"]?["job"] == JSON(done) }
                #expect(line.json["result"]?["result"] == text)
            }
            _ = try await wire.call("job.cancel", .job(gate))
            var ended: Set<Int> = []
            for _ in jobs {
                let line = try #require(try await reader.next("answer to job.wait"))
                #expect(line.json["result"]?["result"] == text)
                ended.insert(try #require(line.json["result"]?["job"]?.int))
            }
            #expect(ended == Set(jobs))
        }
    }

    @Test func longSpec_isShownWhole_onlyByItself() async throws {
        try await Daemon.run { _, wire in
            let value = JSON.string(String(repeating: "\u{7F}", count: 950_000))
            let spec = JSON.value(value, ["delay": 1000])
            let id = try await wire.submit(spec)
            let (whole, length) = try await answer(wire, "job.get", .job(id))
            #expect(length < most)
            #expect(whole["result"]?["source"]?["value"] == value)
            let listed = try await wire.call("job.list")["jobs"]?[0]
            #expect(listed?["source"] == nil)
            #expect(listed?["specSize"] == JSON(spec.utf8.count))
            #expect(try await wire.call("job.explain", spec)["source"]?["value"] == value)
        }
    }

    @Test func errors_echoLittle_ofWhatTheyRefuse() async throws {
        try await Daemon.run { _, wire in
            let long = String(repeating: "x\u{1}", count: 100_000)
            let calls: [(String, JSON)] = [
                ("job.get", .object(JSONObject([.init(name: long, value: 1)]))), (long, [:]),
                ("job.list", ["state": [.string(long)]]), ("job.unwatch", ["watch": .string(long)]),
                ("job.submit", .value(1, ["then": [["then": ["return": .string("{{" + long + "}}")]]]])),
                ("job.submit", .value(1, ["label": .string(long)])),
                ("job.submit", .value(1, ["tags": [.string(String(repeating: "x", count: 257))]])),
            ]
            for (method, params) in calls {
                let (refusal, length) = try await answer(wire, method, params)
                #expect(refusal["error"] != nil)
                #expect(length < 2048, "\(refusal)")
            }
            let failed = try await wire.run([
                "source": ["type": "error", "kind": "mine", "message": .string(long)],
                "then": [["fail": ["throw": ["kind": "mine", "message": "{{error/message}} {{error/message}}"]]]],
            ])
            #expect(failed["error"]?["kind"] == "mine")
            #expect(failed["error"]?["message"]?.utf8.count ?? 0 <= 4096 + 2)
            #expect(failed["error"]?["message"]?.string?.hasPrefix("x\u{1}x\u{1}") == true)
        }
    }

    @Test func page_leavesResultsOut_thenEndsEarly() async throws {
        try await Daemon.run { _, wire in
            let text = JSON.string(String(repeating: "r", count: 60_000))
            var ids: [JSON] = []
            for _ in 0..<30 { ids.append(JSON(try await wire.submit(.value(text)))) }
            // Answered in this order, not by number.
            ids.reverse()
            let (waited, waitedLength) = try await answer(wire, "job.wait", ["jobs": .array(ids)])
            #expect(waitedLength <= most)
            let jobs = try #require(waited["result"]?["jobs"]?.array)
            #expect(jobs.map { $0["job"] } == ids)
            let withResult = jobs.prefix { $0["result"] == text }.count
            #expect((17...18).contains(withResult), "until there is 1 MiB")
            #expect(jobs[withResult...].allSatisfy { $0["result"] == nil && $0["resultSize"] == 60_002 })
            #expect(jobs.allSatisfy { $0["source"] == nil && $0["specSize"] != nil })
            // Specs that are not omitted: a page of them ends early, and the next one continues.
            let label = JSON.string(String(repeating: "l", count: 3900))
            for _ in 0..<500 { wire.send("job.submit", .value(label, ["delay": 1000])) }
            try await wire.eventually { $0["jobs"]?["scheduled"] == 500 }
            var (after, seen, pages) = (JSON.null, [Int](), 0)
            repeat {
                var params: JSON = ["limit": 1000, "state": ["scheduled"]]
                if let id = after.unlessNull { params = params.with(["after": id]) }
                let (page, length) = try await answer(wire, "job.list", params)
                #expect(length <= most)
                seen += page["result"]?["jobs"]?.array?.compactMap { $0["job"]?.int } ?? []
                after = page["result"]?["next"] ?? .null
                pages += 1
            } while after != .null && pages < 10
            #expect(pages == 2)
            #expect(seen.count == 500 && seen == seen.sorted(by: >))
            let (watch, watchLength) = try await answer(wire, "job.watch", ["all": true])
            #expect(watchLength <= most)
            #expect(watch["result"]?["truncated"] == true)
        }
    }
}
