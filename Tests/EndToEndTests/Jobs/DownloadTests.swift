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

    @Test func download_stopsWithExists_whenFileIsThere() async throws {
        try await serve { origin, daemon, wire in
            _ = try await wire.succeed(download(origin, to: "file"))
            let requests = origin.log.count()
            let error = try await wire.fail(download(origin, to: "file"))
            #expect(error["kind"] == "exists")
            #expect(origin.log.count() == requests)
            #expect(try await wire.fail(download(origin, to: "file", ["exists": "fail"]))["kind"] == "exists")
        }
    }

    @Test func download_replaces_whenToldTo() async throws {
        try await serve { origin, daemon, wire in
            _ = try await wire.succeed(download(origin, to: "file"))
            origin["/file"] = OriginResource([1, 2, 3], etag: "\"v2\"")
            let result = try await wire.succeed(download(origin, to: "file", ["exists": "replace"]))
            #expect(result["size"] == 3)
            #expect(try Files.bytes(daemon.downloads + "/file") == [1, 2, 3])
        }
    }

    @Test func download_takesNextName_whenRenaming() async throws {
        try await serve { origin, daemon, wire in
            for name in ["tool.tar.gz", "tool-1.tar.gz", "tool-2.tar.gz"] {
                let result = try await wire.succeed(download(origin, to: "tool.tar.gz", ["exists": "rename"]))
                #expect(result["path"]?.string == daemon.downloads + "/" + name)
                #expect(try Files.bytes(daemon.downloads + "/" + name) == Sample.content)
            }
        }
    }

    @Test func download_skips_whenFileIsThere() async throws {
        try await serve { origin, daemon, wire in
            _ = try await wire.succeed(download(origin, to: "file"))
            let requests = origin.log.count()
            let result = try await wire.succeed(download(origin, to: "file", ["exists": "skip"]))
            #expect(result["path"]?.string == daemon.downloads + "/file")
            #expect(result["sha256"]?.string == Sample.sha256)
            #expect(origin.log.count() == requests)
        }
    }

    @Test func download_validates_whenFileIsThere() async throws {
        try await serve { origin, daemon, wire in
            let first = try await wire.succeed(download(origin, to: "file", ["exists": "validate"]))
            #expect(first["status"] == 200)
            let same = try await wire.succeed(download(origin, to: "file", ["exists": "validate"]))
            #expect(same["status"] == 304)
            #expect(same["size"] == 100_000)
            #expect(origin.log.last("/file")?.headers["if-none-match"] == "\"v1\"")
            origin["/file"] = OriginResource([9], etag: "\"v2\"")
            let changed = try await wire.succeed(download(origin, to: "file", ["exists": "validate"]))
            #expect(changed["status"] == 200)
            #expect(try Files.bytes(daemon.downloads + "/file") == [9])
        }
    }

    @Test func download_stopsWithChecksum_whenDigestDiffers() async throws {
        try await serve { origin, daemon, wire in
            let good = "sha256:" + Sample.sha256
            _ = try await wire.succeed(download(origin, to: "good", ["checksum": .string(good)]))
            let bad = "sha256:" + Sample.otherSHA256
            let error = try await wire.fail(download(origin, to: "bad", ["checksum": .string(bad)]))
            #expect(error["kind"] == "checksum")
            #expect(Files.names(in: daemon.downloads) == ["good"])
        }
    }

    @Test func download_comesOverSeveralConnections_asManyAsItsHostAllows() async throws {
        let gate = OriginGate()
        try await ScriptedOrigin.run({ request, _ in
            Misbehaviour.correct(Sample.large, etag: "\"v1\"", to: request).enumerated().flatMap { index, step in
                index == 0 ? [step, .wait(gate)] : [step]
            }
        }) { origin in
            try await Daemon.run(configuration: "http: {perHost: 3}") { daemon in
                let wire = try daemon.connect()
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

    @Test func download_triesMirrors_whenFirstFails() async throws {
        try await serve { origin, daemon, wire in
            let mirrors: JSON = [.string(origin.url("/missing")), .string(origin.url("/file"))]
            let spec = JSON.download(.string(origin.url("/gone")), to: "file", ["mirrors": mirrors])
            let result = try await wire.succeed(spec)
            #expect(result["url"]?.string == origin.url("/file"))
            #expect(origin.log.entries.map(\.path) == ["/gone", "/missing", "/file"])
        }
    }

    @Test func download_keepsToRate_whenItHasOne() async throws {
        try await serve { origin, daemon, wire in
            let start = ContinuousClock.now
            _ = try await wire.succeed(download(origin, to: "slow", ["rate": 200_000]))
            // A lower bound, which no machine is too slow for. `rate_isKept` has a clock of its own.
            #expect(ContinuousClock.now - start >= .seconds(0.3))
        }
    }

    @Test func download_isRefused_whenPathLeavesDirectory() async throws {
        try await serve { origin, daemon, wire in
            for path in ["../x", "a/../../x", "/etc/deferd-e2e", "/tmp/x", daemon.downloads + "/../x"] {
                let refusal = try await wire.refusal("job.submit", download(origin, to: path))
                #expect(refusal.code == -32002, "\(path)")
                #expect(refusal.kind == "forbidden", "\(path)")
                #expect(refusal.pointer == "/source/path", "\(path)")
            }
            #expect(origin.log.count() == 0)
        }
    }

    @Test func download_goesToRoot_whenAbsolutePathLiesInOne() async throws {
        try await TemporaryDirectory.with { root in
            try await serve(configuration: "downloads:\n  roots: [\(root.path)]\n") { origin, daemon, wire in
                let result = try await wire.succeed(download(origin, to: root.path + "/sub/file"))
                #expect(result["path"]?.string == root.path + "/sub/file")
                #expect(try Files.bytes(root.path + "/sub/file") == Sample.content)
            }
        }
    }

    @Test func download_storesBytesAsSent_whenTheyAreGzip() async throws {
        try await serve { origin, daemon, wire in
            origin["/file"] = .gzip([0x1f, 0x8b, 1, 2, 3])
            _ = try await wire.succeed(download(origin, to: "file.gz"))
            #expect(try Files.bytes(daemon.downloads + "/file.gz") == [0x1f, 0x8b, 1, 2, 3])
        }
    }

    @Test func download_resumes_whenConnectionBreaks() async throws {
        let content = Sample.content
        try await GuidedOrigin.run { origin in
            try await Daemon.run { daemon in
                let wire = try daemon.connect()
                let job = try await wire.submit(.download(origin.url("/file"), to: "file", retry: ["initial": 0.01]))
                let first = try await origin.exchange("/file")
                first.sendHead(
                    "200 OK", [("Content-Length", "100000"), ("ETag", "\"v1\""), ("Accept-Ranges", "bytes")])
                first.send(Array(content[..<40_000]))
                first.close()
                let second = try await origin.exchange("/file")
                let start = try #require(second.request.rangeStart)
                #expect(second.request.headers["if-range"] == "\"v1\"")
                #expect((1...40_000).contains(start))
                second.answer(.partial(content, from: start, etag: "\"v1\""))
                let result = try await wire.wait(job)["result"]
                #expect(result?["resumedFrom"]?.int == start)
                #expect(result?["attempts"] == 2)
                #expect(result?["status"] == 206)
                #expect(result?["sha256"]?.string == Sample.sha256)
                #expect(try Files.bytes(daemon.downloads + "/file") == content)
            }
        }
    }

    @Test func part_isKeptForARetry_andRemovedWithTheJob() async throws {
        try await GuidedOrigin.run { origin in
            try await Daemon.run { daemon in
                let wire = try daemon.connect()
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

    @Test func download_leavesNothing_whenCancelled() async throws {
        try await GuidedOrigin.run { origin in
            try await Daemon.run { daemon in
                let wire = try daemon.connect()
                let submitted = try await wire.call(
                    "job.submit", .download(origin.url("/file"), to: "deep/file", members: ["watch": true]))
                let job = try #require(submitted["job"]?.int)
                let exchange = try await origin.exchange("/file")
                exchange.sendHead("200 OK", [("Content-Length", "100000"), ("ETag", "\"v1\"")])
                exchange.send([UInt8](repeating: 1, count: 50_000))
                _ = try await wire.next("progress") { $0.method == "job.progress" }
                #expect(Files.names(in: daemon.downloads + "/deep") == ["file.part"])
                _ = try await wire.call("job.cancel", ["job": JSON(job)])
                try await wire.state("cancelled", of: job)
                try await origin.departure(from: "/file")
                #expect(!Files.exists(daemon.downloads + "/deep/file"))
                #expect(!Files.exists(daemon.downloads + "/deep/file.part"))
            }
        }
    }
}
