import Foundation
import Glibc
import JobModel
import TestSupport
import Testing
import TestOrigin

/// The source `download`, against an origin that does as HTTP says.
@Suite struct DownloadTests {
    @Test func download_comesOverSeveralConnections_asManyAsItsHostAllows() async throws {
        let gate = OriginGate()
        try await ScriptedOrigin.run({ request, _ in
            Misbehaviour.correct(Sample.large, etag: "\"v1\"", to: request).enumerated().flatMap { index, step in
                index == 0 ? [step, .wait(gate)] : [step]
            }
        }) { origin in
            try await Daemon.run(configuration: "http: {perHost: 3}") { daemon, wire in
                let job = try await wire.submit(.download(.string(origin.url("/file")), to: "file", ["segments": 16]))
                await origin.log.reaches(3)
                // A fourth would come before the next job's answer; its own request waits for the host.
                _ = try await wire.run(.value("x"))
                #expect(origin.log.count() == 3)
                gate.open()
                let ended = try await wire.wait(job)
                #expect(ended["result"]?["sha256"]?.string == Sample.largeSHA256, "\(ended)")
                #expect(try Files.bytes(daemon.downloads + "/file") == Sample.large)
                for segments in [0, 17, -1] {
                    let refusal = try await wire.refusal(
                        "job.submit", .download(.string(origin.url("/file")), to: "x", ["segments": JSON(segments)]))
                    #expect(refusal.code == -32602 && refusal.pointer == "/source/segments")
                }
                let explained = try await wire.call("job.explain", .download(.string(origin.url("/file")), to: "x"))
                #expect(explained["source"]?["segments"] == 1)
            }
        }
    }

    @Test func download_resumes_whenItIsRetriedByHand() async throws {
        let content = Sample.content
        try await GuidedOrigin.withDaemon { origin, daemon, wire in
            let job = try await wire.submit(.download(origin.url("/file"), to: "file", retry: ["max": 0]))
            let first = try await origin.exchange("/file")
            first.sendHead("200 OK", [("Content-Length", "100000"), ("ETag", "\"v1\"")])
            first.send(Array(content[..<40_000]))
            first.close()
            #expect(try await wire.wait(job)["state"] == "failed")
            _ = try await wire.call("job.retry", .job(job))
            let second = try await origin.exchange("/file")
            let start = try #require(second.request.range?.start)
            second.answer(.partial(content, from: start, etag: "\"v1\""))
            let result = try await wire.wait(job)["result"]
            #expect(result?["resumedFrom"]?.int == start)
            #expect(result?["sha256"]?.string == Sample.sha256)
        }
    }

    @Test func part_isKeptForARetry_andRemovedWithTheJob() async throws {
        try await GuidedOrigin.withDaemon { origin, daemon, wire in
            let job = try await wire.submit(.download(origin.url("/file"), to: "file", retry: ["max": 0]))
            let exchange = try await origin.exchange("/file")
            exchange.sendHead("200 OK", [("Content-Length", "100000"), ("ETag", "\"v1\"")])
            exchange.send(Array(Sample.content[..<40_000]))
            exchange.close()
            #expect(try await wire.wait(job)["state"] == "failed")
            #expect(Files.names(in: daemon.downloads) == ["file.part"])
            _ = try await wire.call("job.remove", ["job": JSON(job)])
            #expect(Files.names(in: daemon.downloads) == [])
        }
    }
}
