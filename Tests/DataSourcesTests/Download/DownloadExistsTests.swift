import DataSources
import DeferredKit
import Dispatch
import Foundation
import Glibc
import JobModel
import SystemPackage
import Testing
import TestOrigin

@Suite struct DownloadExistsTests {
    private func download(_ origin: TestOrigin, _ exists: String?, path: String = "tool.tar.gz") -> JSON {
        .download(origin.url("/tool"), to: path, exists.map { ["exists": .string($0)] } ?? [:])
    }

    private func run(_ body: @escaping @Sendable (TestOrigin, Workbench) async throws -> Void) async throws {
        try await Workbench.run(serving: ["/tool": OriginResource(text: "new", etag: "\"1\"")]) { origin, bench in
            try bench.write(Array("old".utf8), to: bench.downloads + "/tool.tar.gz")
            try await body(origin, bench)
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

    /// The second of two downloads to one path is refused while the first one runs.
    @Test(arguments: ["fail", "replace", "skip", "validate", "rename"])
    func secondDownload_isRefusedOrRenamed_whileFirstRuns(exists: String) async throws {
        let script: ScriptedOrigin.Script = { _, count in
            let head = OriginStep.head("200 OK", [("Content-Length", "6"), ("ETag", "\"a\"")])
            return count == 0 ? [head, .send("abc"), .hold] : [head, .send("ABCDEF")]
        }
        try await Workbench.run(against: script) { origin, bench in
            let source: JSON = .download(origin.url("/x"), to: "x", ["exists": .string(exists)])
            let first = try bench.start(source)
            await first.progress(reaches: 3)
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

    /// A cancel that comes once the new file has replaced the old one removes neither.
    @Test(arguments: ["replace", "validate"])
    func file_isThere_whenCancelComesBehindItsRename(exists: String) async throws {
        let (syncs, begun) = AsyncStream.makeStream(of: Void.self)
        let turnstile = DispatchSemaphore(value: 0)
        var files = FileOperations.real
        files.sync = { file throws(Errno) in
            if try FileOperations.real.statusOfOpen(file).isDirectory {
                begun.yield()
                turnstile.wait()
            }
            try FileOperations.real.sync(file)
        }
        try await Workbench.run(serving: ["/x": OriginResource(text: "new")], files: files) { origin, bench in
            let path = bench.root + "/x"
            try bench.write(Array("old".utf8), to: path)
            let deferred = try bench.start(.download(origin.url("/x"), to: path, ["exists": .string(exists)]))
            for await _ in syncs { break }
            deferred.cancel()
            turnstile.signal()
            await #expect(throws: CancellationError.self) { try await deferred.get() }
            #expect(bench.bytes(of: path) == Array("new".utf8))
        }
    }

    /// A FIFO that is there before or appears during the transfer is not replaced.
    @Test(arguments: ["replace", "validate"], [true, false])
    func fifo_isNotReplaced(exists: String, isThereBefore: Bool) async throws {
        let gate = OriginGate()
        let script: ScriptedOrigin.Script = { _, _ in
            [.head("200 OK", [("Content-Length", "6")]), .send("abc"), .wait(gate), .send("def")]
        }
        try await Workbench.run(against: script) { origin, bench in
            let path = bench.root + "/fifo"
            if isThereBefore { mkfifo(path, 0o600) }
            let deferred = try bench.start(.download(origin.url("/x"), to: path, ["exists": .string(exists)]))
            if !isThereBefore {
                await deferred.progress(reaches: 3)
                mkfifo(path, 0o600)
            }
            gate.open()
            let error = await #expect(throws: JobError.self) { try await deferred.get() }
            #expect(error?.kind == .exists && error?.message.contains("regular file") == true)
            #expect(origin.log.count() == (isThereBefore ? 0 : 1))
            #expect(bench.names(below: bench.root) == ["fifo"])
        }
    }

    /// What appears under the name during the transfer is not lost.
    @Test(arguments: ["fail", "rename", "skip"]) func file_isKept_whenItAppearsMeanwhile(exists: String) async throws {
        let gate = OriginGate()
        let script: ScriptedOrigin.Script = { _, _ in
            [.head("200 OK", [("Content-Length", "6")]), .send("abc"), .wait(gate), .send("def")]
        }
        try await Workbench.run(against: script) { origin, bench in
            let source: JSON = .download(origin.url("/x"), to: "x", ["exists": .string(exists)])
            let deferred = try bench.start(source)
            await deferred.progress(reaches: 3)
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

    /// No download has made it, although its name is that of a part.
    @Test func part_ofTheCallersOwn_isKept() async throws {
        try await Workbench.run(serving: ["/x": OriginResource(text: "new")]) { origin, bench in
            try bench.write(Array("mine".utf8), to: bench.downloads + "/x.part")
            let source: JSON = .download(origin.url("/x"), to: "x")
            #expect(try await bench.failure(source).kind == .exists)
            #expect(bench.bytes(of: bench.downloads + "/x.part") == Array("mine".utf8))
            try FileManager.default.removeItem(atPath: bench.downloads + "/x.part")
            _ = try await bench.result(source)
            var status = stat()
            #expect(lstat(bench.downloads + "/x", &status) == 0)
            #expect(status.st_mode & 0o1600 == 0o600)
        }
    }

    /// Some file systems keep no sticky bit.
    @Test func part_isFetchedAnew_whereFilesCannotBeMarked() async throws {
        var files = FileOperations.real
        files.openBeneath = { directory, path, flags, mode throws(Errno) in
            try FileOperations.real.openBeneath(directory, path, flags, mode & 0o777)
        }
        let (first, second) = (Workbench.bytes(200_000), Workbench.bytes(200_000, seed: 2))
        let script = Misbehaviour.changes(first, to: second, etags: ("\"a\"", "\"b\""))
        try await Workbench.run(against: script, files: files) { origin, bench in
            let source: JSON = .download(origin.url("/x"), to: "x")
            _ = try await bench.failure(source)
            #expect(bench.names(below: bench.downloads) == ["x.part"])
            _ = try await bench.result(source, attempt: 2)
            #expect(bench.bytes(of: bench.downloads + "/x") == second)
        }
    }
}
