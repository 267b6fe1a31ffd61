import Foundation
import JobModel
import TestOrigin
import TestSupport
import Testing

/// Jobs that wait for other jobs.
@Suite struct JobSourceTests {
    private static func waiting(for job: Int) -> JSON { ["source": ["type": "job", "job": JSON(job)]] }

    @Test func unknownJobs_areRefused_whereTheyAreWritten() async throws {
        try await Daemon.run { _, wire in
            let inLink: JSON = ["source": ["type": "value", "value": 1], "then": [["both": Self.waiting(for: 77)]]]
            let inList: JSON = ["source": ["type": "list", "jobs": [.value(1), Self.waiting(for: 77)]]]
            for (spec, pointer) in [
                (Self.waiting(for: 77), "/source/job"), (inLink, "/then/0/both/source/job"),
                (inList, "/source/jobs/1/source/job"),
            ] {
                for method in ["job.submit", "job.explain"] {
                    let refusal = try await wire.refusal(method, spec)
                    #expect(refusal.code == -32602 && refusal.pointer == pointer, "\(refusal)")
                }
            }
            // A chain can submit a job by other means and wait for it.
            let target = try await wire.submit(.value("it"))
            let chain: JSON = [
                "source": ["type": "value", "value": JSON(target)],
                "then": [["then": ["source": ["type": "job", "job": "{{input}}"]]]],
            ]
            #expect(try await wire.succeed(chain) == "it")
        }
    }

    @Test func values_thatLookLikeOutput_areGivenAsTheyAre() async throws {
        try await Daemon.run { _, wire in
            for size in [Int.min, -1, 7, .max] {
                for omitted in [Int.min, -1, 1, .max] {
                    let value: JSON = ["exit": 0, "output": "x", "size": JSON(size), "omitted": JSON(omitted)]
                    let job = try await wire.submit(Self.waiting(for: try await wire.submit(.value(value))))
                    _ = try await wire.wait(job)
                    let data = try await wire.call("job.result", .job(job))["data"]?.string
                    #expect(try JSON(parsing: Base64.decode(data ?? "") ?? []) == value)
                }
            }
        }
    }

    @Test func longResults_outliveTheirJob() async throws {
        let configuration = "limits: {inlineResult: 1000}"
        try await GuidedOrigin.withHousehold({ _, _ in .whole(Sample.content, etag: "\"1\"") }) { origin, household in
            var (daemon, wire) = try await household.serve(configuration: configuration)
            let text = String(repeating: "x", count: 5000)
            var jobs: [(target: Int, job: Int)] = []
            for spec in [JSON.fetch(origin.url("/")), .value(.string(text))] {
                let target = try await wire.submit(spec)
                jobs.append((target, try await wire.submit(Self.waiting(for: target))))
            }
            for (target, job) in jobs {
                _ = try await wire.wait(job)
                _ = try await wire.call("job.remove", .job(target))
            }
            try await daemon.crash()

            // Its start removes files that belong to no job.
            (daemon, wire) = try await household.serve(configuration: configuration)
            let body = try await wire.call("job.result", .job(jobs[0].job))
            #expect(body["size"] == 100_000)
            let value = try await wire.call("job.result", .job(jobs[1].job))
            #expect(Base64.decode(value["data"]?.string ?? "") == Array("\"\(text)\"".utf8))
            try await daemon.stop()
        }
    }

    @Test func deferctl_waitsForJobs_beforeItsOwn() async throws {
        try await GuidedOrigin.withDaemon(configuration: ProgramTests.anyProgram) { origin, daemon, wire in
            let target = try await wire.submit(.fetch(origin.url("/")))
            let other = try await wire.submit(.value(1))
            func run(_ words: [String]) async throws -> Int {
                let text = try await daemon.deferctl(["run", "--detach"] + words).outputText
                return try #require(Int(text.trimmingCharacters(in: .whitespacesAndNewlines)))
            }
            let braces = ["echo", "{{input}} done"]
            let all = try await run(["--after", "\(target),\(other)", "--timeout", "30"] + braces)
            let one = try await run(["--after", "\(target)"] + braces)
            let any = try await run(["--after-any", "\(target)"] + braces)
            let mixed = try await run(["--after", "\(other)", "--after-any", "\(target)", "--"] + braces)
            let never = try await run(["--after", "\(target)", "--after-any", "\(other)"] + braces)
            let listed = try await daemon.deferctl(["list"]).outputText
            #expect(listed.contains("echo {{input}} done"))
            for job in [one, any] { #expect(try await wire.call("job.get", .job(job))["state"] == "running") }
            try await origin.exchange("/").answer(.status("404 Not Found"))
            #expect(try await wire.wait(any)["state"] == "succeeded")
            #expect(try await daemon.deferctl(["result", "--raw", "\(any)"]).outputText.contains("{{input}} done"))
            #expect(try await wire.wait(mixed)["state"] == "succeeded")
            #expect(try await wire.wait(one)["error"]?["kind"] == "http")
            #expect(try await wire.wait(never)["error"]?["kind"] == "http")
            let error = try await wire.wait(all)["error"]
            #expect(error?["kind"] == "list" && error?["cause"]?["kind"] == "http")
            #expect(origin.count("/") == 1)

            let fetch = try await daemon.deferctl(
                ["run", "--quiet", "--after", "\(other)", "no-such-program"], end: .code(65))
            #expect(fetch.errorText.contains("no-such-program"))
            _ = try await daemon.deferctl(["run", "--after", "1,x", "echo"], end: .code(64))
            _ = try await daemon.deferctl(["run", "--after", "999", "echo"], end: .code(65))
        }
    }
}
