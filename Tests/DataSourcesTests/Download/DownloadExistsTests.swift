import DataSources
import DeferredKit
import Foundation
import JobModel
import Testing
import TestOrigin

@Suite struct DownloadExistsTests {
    private func download(_ origin: TestOrigin, _ exists: String?, path: String = "tool.tar.gz") -> JSON {
        var source: JSONObject = JSONObject()
        source["type"] = "download"
        source["url"] = .string(origin.url("/tool"))
        source["path"] = .string(path)
        source["exists"] = exists.map(JSON.string)
        return .object(source)
    }

    private static let digest = "11507a0e2f5e69d5dfa40a62a1bd7b6ee57e6bcd85c67c9b8431b36fff21c437"

    private func run(_ body: @escaping @Sendable (TestOrigin, Workbench) async throws -> Void) async throws {
        try await TestOrigin.run { origin in
            origin["/tool"] = OriginResource(text: "new", etag: "\"1\"")
            try await Workbench.run { bench in
                try bench.write(Array("old".utf8), to: bench.downloads + "/tool.tar.gz")
                try await body(origin, bench)
            }
        }
    }

    @Test(arguments: [nil, "fail"]) func download_failsBeforeTransfer_whenFileExists(exists: String?) async throws {
        try await run { origin, bench in
            let error = try await bench.failure(download(origin, exists))
            #expect(error.kind == .exists)
            #expect(!error.isRetryable)
            #expect(error.message.contains("tool.tar.gz"))
            #expect(origin.log.count() == 0)
            #expect(bench.bytes(of: bench.downloads + "/tool.tar.gz") == Array("old".utf8))
        }
    }

    @Test func download_replacesFile_whenAsked() async throws {
        try await run { origin, bench in
            _ = try await bench.result(download(origin, "replace"))
            #expect(bench.names(below: bench.downloads) == ["tool.tar.gz"])
            #expect(bench.bytes(of: bench.downloads + "/tool.tar.gz") == Array("new".utf8))
        }
    }

    @Test func download_takesNextFreeName_whenAsked() async throws {
        try await run { origin, bench in
            for (job, name) in [(1, "tool-1.tar.gz"), (2, "tool-2.tar.gz")] as [(JobID, String)] {
                let result = try await bench.result(download(origin, "rename"), job: job)
                #expect(result["path"]?.string == bench.downloads + "/" + name)
                #expect(bench.bytes(of: bench.downloads + "/" + name) == Array("new".utf8))
            }
            #expect(bench.bytes(of: bench.downloads + "/tool.tar.gz") == Array("old".utf8))
        }
    }

    @Test func download_isSkipped_whenFileExists() async throws {
        try await run { origin, bench in
            let result = try await bench.result(download(origin, "skip"))
            #expect(origin.log.count() == 0)
            #expect(result["status"] == .null)
            #expect(result["size"] == 3)
            // Of "old".
            #expect(result["sha256"] == "cba06b5736faf67e54b07b561eae94395e774c517a7d910a54369e1263ccfbd4")
            #expect(bench.names(below: bench.downloads) == ["tool.tar.gz"])
        }
    }

    @Test func download_isSkipped_onlyWithTheRightChecksum() async throws {
        try await run { origin, bench in
            var source = try #require(download(origin, "skip").object)
            source["checksum"] = .string("sha256:" + Self.digest)
            let error = try await bench.failure(.object(source))
            #expect(error.kind == .checksum)
            #expect(bench.bytes(of: bench.downloads + "/tool.tar.gz") == Array("old".utf8))
            try bench.write(Array("new".utf8), to: bench.downloads + "/tool.tar.gz")
            let result = try await bench.result(.object(source))
            #expect(result["sha256"]?.string == Self.digest)
        }
    }

    @Test func download_isValidated_byLastDownloadOfPath() async throws {
        try await run { origin, bench in
            let source = download(origin, "validate")
            let first = try await bench.result(source)
            #expect(first["status"] == 200)
            #expect(first["sha256"]?.string == Self.digest)
            let second = try await bench.result(source, job: 2)
            #expect(second["status"] == 304)
            #expect(second["sha256"] == first["sha256"])
            #expect(second["size"] == 3)
            #expect(second["etag"] == "\"1\"")
            #expect(origin.log.last("/tool")?.headers["if-none-match"] == "\"1\"")
            origin["/tool"] = OriginResource(text: "newer", etag: "\"2\"")
            let third = try await bench.result(source, job: 3)
            #expect(third["status"] == 200)
            #expect(bench.bytes(of: bench.downloads + "/tool.tar.gz") == Array("newer".utf8))
        }
    }

    @Test(arguments: ["changed", "removed", "from elsewhere"])
    func download_isNotConditional_whenFileIsNotTheRemembered(reason: String) async throws {
        try await run { origin, bench in
            let source = download(origin, "validate")
            _ = try await bench.result(source)
            let path = bench.downloads + "/tool.tar.gz"
            var next = try #require(source.object)
            switch reason {
            case "changed": try bench.write(Array("mod".utf8), to: path)
            case "removed": try FileManager.default.removeItem(atPath: path)
            default:
                origin["/other"] = OriginResource(text: "new", etag: "\"1\"")
                next["url"] = .string(origin.url("/other"))
            }
            let result = try await bench.result(.object(next), job: 2)
            #expect(result["status"] == 200)
            #expect(bench.bytes(of: path) == Array("new".utf8))
        }
    }

    @Test(arguments: ["fail", "replace", "rename", "skip", "validate"])
    func download_fails_whenPathIsFolder(exists: String) async throws {
        try await run { origin, bench in
            try FileManager.default.createDirectory(atPath: bench.downloads + "/dir", withIntermediateDirectories: true)
            let source = download(origin, exists, path: "dir")
            if exists == "rename" {
                let result = try await bench.result(source)
                #expect(result["path"]?.string == bench.downloads + "/dir-1")
            } else {
                let error = try await bench.failure(source)
                #expect(error.kind == .exists)
            }
        }
    }

    /// The second of two downloads to one path is refused while the first one runs.
    @Test(arguments: ["fail", "replace", "skip", "validate", "rename"])
    func secondDownload_isRefusedOrRenamed_whileFirstRuns(exists: String) async throws {
        let script: ScriptedOrigin.Script = { _, count in
            let head = OriginStep.head("200 OK", [("Content-Length", "6"), ("ETag", "\"a\"")])
            return count == 0 ? [head, .send("abc"), .hold] : [head, .send("ABCDEF")]
        }
        try await ScriptedOrigin.run(script) { origin in
            try await Workbench.run { bench in
                let source: JSON = [
                    "type": "download", "url": .string(origin.url("/x")), "path": "x", "exists": .string(exists),
                ]
                let first = try bench.start(source)
                let (sizes, report) = AsyncStream.makeStream(of: Int64.self)
                first.onProgress { report.yield($0.completed) }
                for await size in sizes where size == 3 { break }
                if exists == "rename" {
                    let result = try await bench.result(source, job: 2)
                    #expect(result["path"]?.string == bench.downloads + "/x-1")
                } else {
                    let error = try await bench.failure(source, job: 2)
                    #expect(error.kind == .exists)
                    #expect(error.message.contains("job 1"))
                }
                first.cancel()
                // The path is free at once.
                let result = try await bench.result(source, job: 3)
                #expect(result["path"]?.string == bench.downloads + "/x")
                #expect(bench.bytes(of: bench.downloads + "/x") == Array("ABCDEF".utf8))
            }
        }
    }

    /// What appears under the name during the transfer is not lost.
    @Test(arguments: ["fail", "rename", "skip"]) func file_isKept_whenItAppearsMeanwhile(exists: String) async throws {
        let gate = OriginGate()
        let script: ScriptedOrigin.Script = { _, _ in
            [.head("200 OK", [("Content-Length", "6")]), .send("abc"), .wait(gate), .send("def")]
        }
        try await ScriptedOrigin.run(script) { origin in
            try await Workbench.run { bench in
                let source: JSON = [
                    "type": "download", "url": .string(origin.url("/x")), "path": "x", "exists": .string(exists),
                ]
                let deferred = try bench.start(source)
                let (sizes, report) = AsyncStream.makeStream(of: Int64.self)
                deferred.onProgress { report.yield($0.completed) }
                for await size in sizes where size == 3 { break }
                try bench.write(Array("other".utf8), to: bench.downloads + "/x")
                gate.open()
                switch exists {
                case "fail":
                    let error = await #expect(throws: JobError.self) { try await deferred.get() }
                    #expect(error?.kind == .exists)
                case "rename":
                    let result = try await deferred.get()
                    #expect(result["path"]?.string == bench.downloads + "/x-1")
                    #expect(bench.bytes(of: bench.downloads + "/x-1") == Array("abcdef".utf8))
                default:
                    let result = try await deferred.get()
                    #expect(result["size"] == 5)
                }
                #expect(bench.bytes(of: bench.downloads + "/x") == Array("other".utf8))
                #expect(!bench.names(below: bench.downloads).contains("x.part"))
            }
        }
    }
}
