import JobModel
import Testing

/// Chains of links: which links run, with which input and outcome.
@Suite struct ChainTests {
    private func chain(_ source: JSON, _ links: [JSON]) -> JSON { source.with(["then": .array(links)]) }

    @Test func links_applyByOutcome_likeCallbacks() async throws {
        try await Daemon.run { _, wire in
            let ok: JSON = .value("in")
            let bad: JSON = .failure("mine")
            let yes: JSON = ["return": "yes"]
            let cases: [(JSON, [JSON], JSON)] = [
                (ok, [["then": yes]], "yes"), (ok, [["fail": yes]], "in"), (bad, [["fail": yes]], "yes"),
                (ok, [["then": ["return": 1], "fail": ["return": 2]]], 1),
                (bad, [["then": ["return": 1], "fail": ["return": 2]]], 2),
                (ok, [["both": ["return": "{{input}}"]]], "in"),
                (bad, [["both": ["return": "{{error/kind}}"]]], "mine"),
                (ok, [["both": ["return": "{{error}}"]]], nil), (bad, [["both": ["return": "{{input}}"]]], nil),
                (ok, [["finally": ["return": "other"]]], "in"), (bad, [["fail": yes, "on": ["mine", "http"]]], "yes"),
                (
                    ok, [["then": ["throw": ["message": "m"]]], ["then": yes], ["fail": ["return": "{{error/kind}}"]]],
                    "invalid"
                ),
                (
                    ok,
                    [["then": ["throw": ["kind": "a-b", "message": "m"]]], ["fail": ["return": "{{error/link}}"]]], 1
                ),
                (ok, [["finally": ["throw": ["message": "ignored"]]], ["then": ["return": "{{input}}!"]]], "in!"),
                (
                    bad, [["fail": ["return": "{{error/message}}"]], ["then": ["return": ["{{input}}"]]]],
                    ["It was meant to fail."]
                ),
            ]
            for (source, links, expected) in cases {
                let job = try await wire.run(chain(source, links))
                #expect(job["state"] == "succeeded", "\(links): \(job)")
                #expect(job["result"] == expected, "\(links)")
            }
        }
    }

    @Test func chain_downloadsFromMirror_asInTheProtocolsExample() async throws {
        try await GuidedOrigin.withDaemon({ request, _ in
            switch request.path {
            case "/latest": .json("{\"assets\": [{\"url\": \"http://\(request.headers["host"] ?? "")/gone\"}]}")
            case "/mirror": .whole(Sample.content, etag: "\"1\"")
            case "/done": .text("noted")
            default: .status("404 Not Found")
            }
        }) { origin, _, wire in
            let job = try await wire.run([
                "source": ["type": "json", "url": origin.url("/latest")],
                "then": [
                    ["then": ["source": ["type": "download", "url": "{{input/assets/0/url}}", "path": "tool"]]],
                    [
                        "fail": ["source": ["type": "download", "url": origin.url("/mirror"), "path": "tool"]],
                        "on": ["http", "timeout"],
                    ],
                    [
                        "finally": [
                            "source": [
                                "type": "url", "url": origin.url("/done"), "method": "POST", "body": "{{job/id}}",
                            ]
                        ]
                    ],
                ],
            ])
            #expect(job["state"] == "succeeded", "\(job)")
            #expect(job["result"]?["sha256"]?.string == Sample.sha256)
            let done = try #require(origin.requests.last)
            #expect(done.path == "/done")
            #expect(String(decoding: done.body, as: UTF8.self) == "\(job["job"] ?? .null)")
            #expect(origin.requests.map(\.path) == ["/latest", "/gone", "/mirror", "/done"])
            #expect(job["outcomes"]?.array?.map { $0["ok"] } == [true, false, true, true])
        }
    }

    // MARK: - Expressions

    /// Where a number from a server becomes a number of the daemon.
    @Test(arguments: ["1e999999", String(repeating: "9", count: 10_000)])
    func number_isInvalid_whenItIsFilledInAndTooLarge(_ number: String) async throws {
        try await GuidedOrigin.withDaemon({ _, _ in .json(number) }) { origin, _, wire in
            let sources: [JSON] = [
                ["type": "timer", "seconds": "{{input}}"],
                ["type": "download", "url": origin.url("/x"), "path": "x", "rate": "{{input}}"],
                ["type": "download", "url": origin.url("/x"), "path": "x", "segments": "{{input}}"],
                ["type": "list", "jobs": [["source": ["type": "value", "value": 1]]], "concurrency": "{{input}}"],
            ]
            for source in sources {
                let error = try await wire.fail([
                    "source": ["type": "json", "url": origin.url("/n")], "then": [["then": ["source": source]]],
                ])
                #expect(error["kind"] == "invalid", "\(error)")
            }
            let job = try await wire.submit([
                "source": ["type": "json", "url": origin.url("/n")],
                "then": [["then": ["source": ["type": "value", "value": "{{input}}"]]]],
            ])
            #expect(try await wire.wait(job)["result"]?.description == number)
        }
    }

    // MARK: - Times

    @Test func timeout_boundsOneAttempt_ofOneSource() async throws {
        try await Daemon.run { _, wire in
            let error = try await wire.fail(.timer(1000, ["timeout": 0.1, "retry": ["max": 2, "initial": 0.01]]))
            #expect(error["kind"] == "timeout")
            #expect(error["attempts"] == 3)
            let job = try await wire.run(
                chain(
                    .value(1),
                    [
                        [
                            "then": [
                                "source": ["type": "timer", "seconds": 1000], "timeout": 0.1, "retry": ["max": 0],
                            ]
                        ], ["fail": ["return": "{{error/kind}} {{error/attempts}}"]],
                    ]))
            #expect(job["result"] == "timeout 1", "\(job)")
        }
    }

    @Test func deadline_failsJob_andRunsItsFinally() async throws {
        try await GuidedOrigin.withDaemon(
            { request, _ in request.path == "/finally" ? .text("f") : nil }
        ) { origin, _, wire in
            let job = try await wire.run(
                chain(
                    .fetch(origin.url("/slow"), ["deadline": 2]),
                    [
                        ["then": ["return": 1]], ["fail": ["return": 2]], ["both": ["return": 3]],
                        [
                            "finally": [
                                "source": [
                                    "type": "url", "url": origin.url("/finally"), "method": "POST",
                                    "body": "{{error/kind}}",
                                ]
                            ]
                        ],
                    ]))
            #expect(job["state"] == "failed")
            #expect(job["error"]?["kind"] == "deadline")
            // On a busy machine, the deadline can pass before the source begins.
            let hasBegun = origin.requests.contains { $0.path == "/slow" }
            if hasBegun { try await origin.departure(from: "/slow") }
            #expect(origin.requests.last?.path == "/finally")
            #expect(origin.requests.last.map { String(decoding: $0.body, as: UTF8.self) } == "deadline")
            #expect(job["outcomes"]?.array?.map { $0["link"] } == (hasBegun ? [0, 4] : [4]))
        }
    }

    @Test func delay_andNotBefore_holdJobBack() async throws {
        try await Daemon.run { _, wire in
            func time(_ name: String, of job: JSON) throws -> Timestamp {
                try #require(Timestamp(rfc3339: job[name]?.string ?? ""))
            }
            // Far off, so that it does not matter how long the looking takes.
            for (member, value) in [("delay", 1000), ("notBefore", "2100-01-01T00:00:00.000Z")] as [(String, JSON)] {
                let answer = try await wire.call("job.submit", .value(1, [member: value]))
                #expect(answer["state"] == "scheduled")
                let job = try await wire.call("job.get", .job(answer["job"]?.int ?? 0))
                let wanted =
                    try member == "delay"
                    ? time("createdAt", of: job).adding(seconds: 1000).description : value.string
                #expect(job["notBefore"]?.string == wanted)
            }
            // And near: they begin, and not before.
            let now = try time("startedAt", of: try await wire.call("server.info"))
            let later = now.adding(seconds: 1)
            let delayed = try await wire.run(.value(1, ["delay": 0.3]))
            #expect(try time("startedAt", of: delayed).seconds(since: time("createdAt", of: delayed)) >= 0.3)
            #expect(delayed["notBefore"] == nil)
            let held = try await wire.run(.value(2, ["notBefore": .string(later.description)]))
            #expect(try time("startedAt", of: held).seconds(since: later) >= 0)
            let past = try await wire.call("job.submit", .value(3, ["notBefore": "2020-01-01T00:00:00Z"]))
            #expect(try await wire.wait(past["job"]?.int ?? 0)["state"] == "succeeded")
        }
    }
}
