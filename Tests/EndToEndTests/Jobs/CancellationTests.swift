import JobModel
import TestOrigin
import Testing

/// A cancel reaches everything below, at once, and `finally` links still run.
@Suite struct CancellationTests {
    @Test func cancel_reachesEverythingBelow() async throws {
        try await GuidedOrigin.withDaemon(configuration: "http:\n  perHost: 100\n") { origin, daemon, wire in
            func download(_ name: String) -> JSON { .download(origin.url("/" + name), to: name) }
            let inner: JSON = ["source": ["type": "list", "jobs": [download("c"), download("d"), .timer(1000)]]]
            let race: JSON = ["source": ["type": "list", "mode": "first", "jobs": [download("e"), inner]]]
            let each: JSON = [
                "source": [
                    "type": "each", "in": ["f", "g"],
                    "job": .download(.string((origin.url("/").string ?? "") + "{{item}}"), to: "{{item}}"),
                ]
            ]
            let spec: JSON = [
                "source": ["type": "value", "value": 1],
                "then": [
                    [
                        "then": [
                            "source": [
                                "type": "list", "jobs": [download("a"), race, each, .value(1, ["delay": 1000])],
                            ]
                        ]
                    ]
                ],
            ]
            let id = try await wire.submit(spec)
            let names = ["a", "c", "d", "e", "f", "g"]
            for name in names {
                let exchange = try await origin.exchange("/" + name)
                exchange.sendHead("200 OK", [("Content-Length", "100000"), ("ETag", "\"1\"")])
                exchange.send([UInt8](repeating: 1, count: 10_000))
            }
            _ = try await wire.call("job.watch", ["job": JSON(id), "children": true, "interval": 0.01])
            _ = try await wire.call("job.cancel", .job(id))
            // None of these ends without the cancellation: the origin sends no more, and no timeout is set.
            for name in names { try await origin.departure(from: "/" + name) }
            #expect(try await wire.wait(id)["state"] == "cancelled")
            try await wire.eventually {
                $0["jobs"]?["running"] == 0 && $0["jobs"]?["scheduled"] == 0 && $0["jobs"]?["queued"] == 0
            }
            #expect(Files.names(in: daemon.downloads).isEmpty)
        }
    }
}
