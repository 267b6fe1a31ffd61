import JobModel
import Testing

/// Chains of links: which links run, with which input and outcome.
@Suite struct ChainTests {
    private func chain(_ source: JSON, _ links: [JSON]) -> JSON { source.with(["then": .array(links)]) }

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
}
