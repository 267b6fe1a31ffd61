import JobModel
import Synchronization
import Testing

/// Retries: which failures are retried, when, and how often; and `job.retry`.
@Suite struct RetryTests {
    private static let quick: JSON = ["max": 3, "initial": 0.01, "jitter": false]

    @Test func source_isTriedAgain_afterPassingStatusesOnly() async throws {
        let passing = ["408", "425", "429", "500", "502", "503", "504"]
        let lasting = ["400", "401", "403", "404", "410", "501"]
        try await GuidedOrigin.withDaemon({ request, count in
            let status = String(request.path.dropFirst())
            return count < 2 || lasting.contains(status) ? .status("\(status) Bad") : .text("ok")
        }) { origin, _, wire in
            for status in passing {
                let job = try await wire.run(.fetch(origin.url("/" + status), ["retry": Self.quick]))
                #expect(job["state"] == "succeeded", "\(job)")
                #expect(job["attempt"] == 3)
                #expect(job["outcomes"]?[0]?["attempts"] == 3)
                #expect(origin.count("/" + status) == 3)
            }
            for status in lasting {
                let error = try await wire.fail(.fetch(origin.url("/" + status), ["retry": Self.quick]))
                #expect(error["kind"] == "http")
                #expect(error["http"]?["status"]?.int == Int(status))
                #expect(error["retryable"] == false)
                #expect(origin.count("/" + status) == 1)
            }
        }
    }

    @Test func retryAfter_holdsBackEveryJobToThatHost() async throws {
        // So long that no test sees its end, however slow the machine is.
        try await GuidedOrigin.run({ _, count in
            count == 0 ? .status("429 Slow", [("Retry-After", "3000")]) : .text("ok")
        }) { origin in
            try await GuidedOrigin.withDaemon({ _, _ in .text("other") }) { other, _, wire in
                let spec = JSON.fetch(
                    origin.url("/a"), ["retry": Self.quick.with(["maxDelay": 3000]), "watch": true])
                let first = try #require(try await wire.call("job.submit", spec)["job"]?.int)
                let snapshot = try await wire.state("scheduled", of: first).json["params"]?["snapshot"]
                let time = try #require(Timestamp(rfc3339: snapshot?["notBefore"]?.string ?? ""))
                let began = try #require(Timestamp(rfc3339: snapshot?["startedAt"]?.string ?? ""))
                #expect(time.seconds(since: began) >= 3000)
                let second = try await wire.submit(.fetch(origin.url("/b")))
                #expect(try await wire.succeed(.fetch(other.url("/")))["body"] == "other")
                #expect(try await wire.call("job.get", .job(second))["state"] == "queued")
                #expect(origin.requests.count == 1)
            }
        }
    }

    // MARK: - job.retry

    @Test func retry_goesOnFromFailedLink_orFromStart() async throws {
        let isBroken = Atomic(true)
        try await GuidedOrigin.withDaemon({ request, _ in
            request.path == "/2" && isBroken.load(ordering: .acquiring) ? .status("404 Gone") : .text(request.path)
        }) { origin, _, wire in
            let links = (1...3).map { JSON.fetching(origin.url("/\($0)")) }
            let spec: JSON = JSON.fetch(origin.url("/0"), ["then": .array(links + [["finally": ["return": 1]]])])
            let id = try await wire.submit(spec)
            let failed = try await wire.wait(id)
            #expect(failed["error"]?["link"] == 2)
            #expect(failed["outcomes"]?.array?.map { $0["link"] } == [0, 1, 2, 4])
            isBroken.store(false, ordering: .releasing)
            let retried = try await wire.call("job.retry", .job(id))
            #expect(retried["job"]?.int == id)
            #expect(["queued", "running"].contains(retried["state"]))
            let done = try await wire.wait(id)
            #expect(done["result"]?["body"] == "/3")
            #expect(done["error"] == nil)
            #expect(done["outcomes"]?.array?.map { $0["link"] } == [0, 1, 2, 3, 4])
            #expect(["/0", "/1", "/2", "/3"].map(origin.count) == [1, 1, 2, 1])
            #expect(try await wire.refusal("job.retry", .job(id)).code == -32004)
        }
    }

    @Test func retry_makesChildrenAnew_whenListFailed() async throws {
        let isBroken = Atomic(true)
        try await GuidedOrigin.withDaemon({ request, _ in
            request.path == "/bad" && isBroken.load(ordering: .acquiring) ? .status("404 Gone") : .text(request.path)
        }) { origin, _, wire in
            let id = try await wire.submit([
                "source": [
                    "type": "list", "mode": "all",
                    "jobs": [.fetch(origin.url("/good")), .fetch(origin.url("/bad"))],
                ]
            ])
            #expect(try await wire.wait(id)["state"] == "failed")
            let child = try await wire.call("job.list", ["parent": JSON(id)])["jobs"]?[0]?["job"]?.int ?? 0
            #expect(try await wire.refusal("job.retry", .job(child)).code == -32004)
            isBroken.store(false, ordering: .releasing)
            _ = try await wire.call("job.retry", .job(id))
            let done = try await wire.wait(id)
            #expect(done["result"]?.array?.map { $0["body"] ?? .null } == ["/good", "/bad"])
            #expect(try await wire.call("job.list", ["parent": JSON(id)])["jobs"]?.array?.count == 2)
            #expect(done["children"] == 2)
        }
    }
}
