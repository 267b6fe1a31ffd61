import Foundation
import Glibc
import JobModel
import TestSupport
import Testing
import TestOrigin

/// The source `download`, against an origin that does as HTTP says.
@Suite struct DownloadTests {
    private func serve(
        configuration: String = "", _ body: @escaping @Sendable (TestOrigin, Daemon, Wire) async throws -> Void
    ) async throws {
        try await TestOrigin.run { origin in
            origin["/file"] = OriginResource(Sample.content, etag: "\"v1\"")
            try await Daemon.run(configuration: configuration) { daemon in
                try await body(origin, daemon, daemon.connect())
            }
        }
    }

    private func download(_ origin: TestOrigin, to path: String, _ more: [String: JSON] = [:]) -> JSON {
        .download(.string(origin.url("/file")), to: path, more)
    }

    @Test func download_writesFile_whenOriginHasIt() async throws {
        try await serve { origin, daemon, wire in
            let job = try await wire.run(download(origin, to: "a/b/file.bin"))
            #expect(job["state"] == "succeeded", "\(job)")
            let result = try #require(job["result"])
            let path = daemon.downloads + "/a/b/file.bin"
            #expect(result["path"]?.string == path)
            #expect(result["size"] == 100_000)
            #expect(result["status"] == 200)
            #expect(result["etag"] == "\"v1\"")
            #expect(result["sha256"]?.string == Sample.sha256)
            #expect(result["resumedFrom"] == 0)
            #expect(result["attempts"] == 1)
            #expect(result["url"]?.string == origin.url("/file"))
            #expect(try Files.bytes(path) == Sample.content)
            #expect(Files.names(in: daemon.downloads + "/a/b") == ["file.bin"])
        }
    }

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
            let start = try #require(second.request.rangeStart)
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
