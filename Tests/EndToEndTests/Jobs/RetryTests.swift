import JobModel
import TestOrigin
import Testing

/// Retries: when, and how often; and timeouts of attempts.
@Suite struct RetryTests {
    @Test func retryAfter_holdsBackEveryJobToThatHost() async throws {
        // So long that no test sees its end, however slow the machine is.
        try await GuidedOrigin.run({ _, count in
            count == 0 ? .status("429 Slow", [("Retry-After", "3000")]) : .text("ok")
        }) { origin in
            try await GuidedOrigin.withDaemon({ _, _ in .text("other") }) { other, _, wire in
                let retry: JSON = ["max": 3, "initial": 0.01, "maxDelay": 3000, "jitter": false]
                let spec = JSON.fetch(origin.url("/a"), ["retry": retry, "watch": true])
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

    @Test func timeout_boundsOneAttempt_ofOneSource() async throws {
        try await GuidedOrigin.withDaemon { origin, _, wire in
            let spec: JSON = .fetch(origin.url("/"), ["timeout": 0.1, "retry": ["max": 2, "initial": 0.01]])
            let error = try await wire.fail(spec)
            #expect(error["kind"] == "timeout")
            #expect(error["attempts"] == 3)
            let timer: JSON = ["type": "timer", "seconds": 1000]
            let links: JSON = [
                ["then": ["source": timer, "timeout": 0.1]],
                ["fail": ["return": "{{error/kind}} {{error/attempts}}"]],
            ]
            #expect(try await wire.succeed(.value(1, ["then": links])) == "timeout 1")
        }
    }
}
