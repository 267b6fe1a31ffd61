import SystemPackage
import DataSources
import DeferredKit
import Foundation
import JobModel
import NIOCore
import NIOEmbedded
import Synchronization
import Testing
import TestOrigin

@Suite struct DownloadFailureTests {
    private static let body = Workbench.bytes(2_000_000)

    private func source(_ origin: TestOrigin, _ more: [String: JSON] = [:]) -> JSON {
        .download(origin.url("/x"), to: "new/x", more)
    }

    private func run(
        files: FileOperations = .real, timers: (any EventLoop)? = nil,
        _ body: @escaping @Sendable (TestOrigin, Workbench) async throws -> Void
    ) async throws {
        try await Workbench.run(
            serving: ["/x": OriginResource(Self.body, etag: "\"1\"")], files: files, timers: timers
        ) {
            // However slow the machine or the clock is, the server's silence ends nothing.
            $0.http.idleTimeout = 86_400
        } _: { origin, bench in
            try await body(origin, bench)
        }
    }

    /// The file operations with one that fails with `code` from its `after`th call on.
    private static func failing(_ operation: String, _ code: Int32, after: Int = 0) -> FileOperations {
        var files = FileOperations.real
        let real = FileOperations.real
        let calls = Mutex(0)
        let check: @Sendable () throws(Errno) -> Void = { () throws(Errno) in
            let isDue = calls.withLock { calls in
                calls += 1
                return calls > after
            }
            if isDue { throw Errno(rawValue: code) }
        }
        switch operation {
        case "open":
            files.openBeneath = { directory, path, flags, mode throws(Errno) in
                if flags & O_CREAT != 0 { try check() }
                return try real.openBeneath(directory, path, flags, mode)
            }
        case "write":
            files.writeAt = { file, offset, bytes throws(Errno) in
                try check()
                try real.writeAt(file, offset, bytes)
            }
        case "sync", "syncFolder":
            files.sync = { file throws(Errno) in
                if try real.statusOfOpen(file).isDirectory == (operation == "syncFolder") { try check() }
                try real.sync(file)
            }
        default:
            files.rename = { directory, name, newName, replacing throws(Errno) in
                try check()
                try real.rename(directory, name, newName, replacing)
            }
        }
        return files
    }

    @Test(arguments: [
        ("open", EROFS, 0), ("open", ENOSPC, 0), ("write", ENOSPC, 0), ("write", ENOSPC, 1), ("write", EIO, 2),
        ("write", EDQUOT, 0), ("sync", EIO, 0), ("rename", EIO, 0), ("rename", EROFS, 0), ("syncFolder", EIO, 2),
    ])
    func failure_isStorage_andLeavesNoFile(operation: String, code: Int32, after: Int) async throws {
        try await run(files: Self.failing(operation, code, after: after)) { origin, bench in
            let error = try await bench.failure(source(origin))
            #expect(error.kind == .storage)
            #expect(error.isRetryable == (operation == "write" && code != EIO))
            #expect(error.message.contains("new/x"))
            #expect(bench.names(below: bench.downloads) == ["new"])
            // A mirror would not help.
            #expect(origin.log.count() <= 1)
        }
    }

    @Test func failure_isStorage_whenSyncInBetweenFails() async throws {
        let script: ScriptedOrigin.Script = { _, _ in
            [.head("200 OK", [("Content-Length", "2000000"), ("ETag", "\"a\"")]), .stream(1_000_000), .hold]
        }
        let clock = NIOAsyncTestingEventLoop()
        // Longer than the clock turns.
        try await Workbench.run(against: script, files: Self.failing("sync", EIO), timers: clock) {
            $0.http.idleTimeout = 86_400
        } _: { origin, bench in
            let deferred = try bench.start(.download(origin.url("/x"), to: "x"))
            await deferred.progress(reaches: 1_000_000)
            await clock.turn(by: .milliseconds(10)) { deferred.outcome == nil }
            let error = try await bench.failure(of: deferred)
            #expect(error.kind == .storage)
            #expect(bench.names(below: bench.downloads) == [])
        }
    }

    /// Such are those of some virtual machines, and some in user space.
    @Test(arguments: [EPERM, ENOSYS, EOPNOTSUPP])
    func file_getsItsName_whereItsFileSystemCanOnlyReplace(code: Int32) async throws {
        var files = FileOperations.real
        files.rename = { directory, name, newName, replacing throws(Errno) in
            if !replacing { throw Errno.invalidArgument }
            try FileOperations.real.rename(directory, name, newName, replacing)
        }
        files.link = { _, _, _ throws(Errno) in throw Errno(rawValue: code) }
        try await run(files: files) { origin, bench in
            _ = try await bench.result(source(origin))
            #expect(bench.names(below: bench.downloads) == ["new", "new/x"])
        }
    }

    /// The system tells once that it could not write, and that is while the last bytes come in.
    @Test func failure_isStorage_whenSyncFailsAtTheEnd() async throws {
        let (gate, failing) = (OriginGate(), DispatchSemaphore(value: 0))
        let isFirst = Mutex(true)
        var files = FileOperations.real
        files.sync = { file throws(Errno) in
            guard try !FileOperations.real.statusOfOpen(file).isDirectory,
                isFirst.withLock({ exchange(&$0, with: false) })
            else { return try FileOperations.real.sync(file) }
            failing.wait()
            throw Errno.ioError
        }
        let script: ScriptedOrigin.Script = { _, _ in
            [
                .head("200 OK", [("Content-Length", "2000000"), ("ETag", "\"a\"")]), .stream(1_000_000), .wait(gate),
                .stream(1_000_000),
            ]
        }
        let clock = NIOAsyncTestingEventLoop()
        try await Workbench.run(against: script, files: files, timers: clock) {
            $0.http.idleTimeout = 86_400
        } _: { origin, bench in
            let deferred = try bench.start(.download(origin.url("/x"), to: "x"))
            await deferred.progress(reaches: 1_000_000)
            await clock.turn(by: .milliseconds(10)) { isFirst.withLock(\.self) }
            gate.open()
            await deferred.progress(reaches: 2_000_000)
            failing.signal()
            #expect(try await bench.failure(of: deferred).kind == .storage)
            #expect(bench.names(below: bench.downloads) == [])
        }
    }

    @Test func spill_failsWithStorage_whenDiskIsFull() async throws {
        try await run(files: Self.failing("write", ENOSPC, after: 1)) { origin, bench in
            let error = try await bench.failure(["type": "url", "url": .string(origin.url("/x"))])
            #expect(error.kind == .storage)
            #expect(bench.bytes(of: bench.bodyPath) == nil)
        }
    }

    @Test func mirrors_areTriedInOrder() async throws {
        try await run { origin, bench in
            let other = Workbench.bytes(10, seed: 9)
            origin["/wrong"] = OriginResource(other)
            let right = try await bench.result(source(origin, ["path": "first"]))
            let mirrors: JSON = [
                .string(origin.url("/none")), .string(origin.url("/wrong")), .string(origin.url("/x?mirror")),
                .string(origin.url("/x?never")),
            ]
            let more: [String: JSON] = [
                "url": "http://no-such-host.invalid/x", "mirrors": mirrors,
                "checksum": .string("sha256:" + (right["sha256"]?.string ?? "")),
            ]
            let result = try await bench.result(source(origin, more))
            #expect(result["url"]?.string == origin.url("/x?mirror"))
            #expect(bench.bytes(of: bench.downloads + "/new/x") == Self.body)
            #expect(origin.log.entries.map(\.target) == ["/x", "/none", "/wrong", "/x?mirror"])
        }
    }

    @Test func credentials_areNotSent_toAMirrorOfAnotherOrigin() async throws {
        try await TestOrigin.run { other in
            try await run { origin, bench in
                other["/x"] = OriginResource(Self.body)
                let mirrors: JSON = [
                    .string(origin.url("/gone")), .string("http://user:secret@127.0.0.1:\(other.port)/none"),
                    .string(other.url("/x")),
                ]
                let fields: JSON = [
                    "Authorization": "Bearer t", "Cookie": "c=1", "Proxy-Authorization": "p", "X-Own": "1",
                ]
                let more: [String: JSON] = [
                    "url": .string(origin.url("/none")), "mirrors": mirrors, "headers": fields,
                ]
                _ = try await bench.result(source(origin, more))
                for (entry, authorization, others) in [
                    (origin.log.last("/none"), "Bearer t", true), (origin.log.last("/gone"), "Bearer t", true),
                    (other.log.last("/none"), "Basic dXNlcjpzZWNyZXQ=", false), (other.log.last("/x"), nil, false),
                ] as [(OriginLog.Entry?, String?, Bool)] {
                    let headers = try #require(entry).headers
                    #expect(headers["authorization"] == authorization)
                    for name in ["cookie", "proxy-authorization"] { #expect((headers[name] != nil) == others) }
                    #expect(headers["x-own"] == "1")
                }
            }
        }
    }

    @Test func failure_namesEach_whenAllMirrorsFail() async throws {
        try await run { origin, bench in
            let more: [String: JSON] = [
                "url": .string(origin.url("/none")),
                "mirrors": ["http://no-such-host.invalid/x", .string(origin.url("/gone"))],
            ]
            let error = try await bench.failure(source(origin, more))
            #expect(error.kind == .http)
            #expect(error.http?["status"]?.int == 404)
            #expect(error.isRetryable)
            #expect(error.failures?.map(\.kind) == [.http, .dns, .http])
            #expect(bench.names(below: bench.downloads) == ["new"])
        }
    }

    @Test func mirror_resumesItsOwnPart() async throws {
        let body = Workbench.bytes(100_000)
        try await Workbench.run(
            against: Misbehaviour.cut(body, times: 1, etag: "\"a\"")
        ) { origin, bench in
            let source: JSON = [
                "type": "download", "url": "http://no-such-host.invalid/x",
                "mirrors": [.string(origin.url("/x"))], "path": "x",
            ]
            _ = try await bench.failure(source)
            let result = try await bench.result(source, attempt: 2)
            #expect(result["resumedFrom"] == 50_000)
            #expect(bench.bytes(of: bench.downloads + "/x") == body)
        }
    }

    @Test func rate_isKept() async throws {
        let clock = NIOAsyncTestingEventLoop()
        // Longer than the server, which is real, is ever waited for.
        try await run(timers: clock) { origin, bench in
            let start = clock.now
            let deferred = try bench.start(source(origin, ["rate": 4_000_000]))
            let reports = Mutex<[(size: Int64, at: TimeAmount)]>([])
            deferred.onProgress { update in reports.withLock { $0.append((update.completed, clock.now - start)) } }
            await clock.turn(by: .milliseconds(1)) { deferred.outcome == nil }
            _ = try await deferred.get()
            let told = reports.withLock { $0 }
            #expect(told.count >= 3)
            for (size, at) in told { #expect(Double(size) <= Double(at.nanoseconds) * 4_000_000 / 1e9) }
        }
    }

    /// The pauses of the rate are ours, not the server's.
    @Test func rate_isNoIdleness() async throws {
        // In one piece, so that once the head is there nothing is waited for but the rate.
        let answer = "HTTP/1.1 200 OK\r\nContent-Length: 800\r\n\r\n" + String(repeating: "x", count: 800)
        let clock = NIOAsyncTestingEventLoop()
        try await Workbench.run(against: { _, _ in [.send(answer)] }, timers: clock) {
            $0.http.lowSpeed.bytes = 1_000_000
            $0.http.lowSpeed.seconds = 10
        } _: { origin, bench in
            let deferred = try bench.start(.download(origin.url("/x"), to: "x", ["rate": 1]))
            await deferred.progress(reaches: 0)
            await clock.turn(by: .seconds(1)) { deferred.outcome == nil }
            #expect(try await deferred.get()["size"] == 800)
        }
    }

    @Test(arguments: ["url", "download"]) func rateOfTheQueue_isTakenInPieces(type: String) async throws {
        let body = [UInt8](repeating: 120, count: 100_000)
        let clock = NIOAsyncTestingEventLoop()
        try await Workbench.run(serving: ["/x": OriginResource(body)], timers: clock) {
            // Longer than the clock is turned.
            $0.http.idleTimeout = 1e9
        } _: { origin, bench in
            let sizes = Mutex<[Int]>([])
            let (pieces, begun) = AsyncStream.makeStream(of: Void.self)
            var context = bench.context(1)
            context.queueRate = RateLimiter(bytesPerSecond: 16_384)
            context.transferred = { size in
                sizes.withLock { $0.append(size) }
                begun.yield()
            }
            let source: JSON = .source(type, origin.url("/x"), type == "url" ? [:] : ["path": "x"])
            let deferred = bench.library.start(try bench.parameters(source), context)
            for await _ in pieces { break }
            await clock.turn(by: .seconds(1)) { deferred.outcome == nil }
            #expect(try await deferred.get()["size"] == 100_000)
            #expect(sizes.withLock { $0.reduce(0, +) } == 100_000)
            #expect(sizes.withLock { $0.allSatisfy { $0 <= 4096 } })
        }
    }

    @Test func file_isEmpty_whenBodyIs() async throws {
        try await Workbench.run(serving: ["/x": OriginResource([])]) { origin, bench in
            let result = try await bench.result(["type": "download", "url": .string(origin.url("/x")), "path": "x"])
            #expect(result["size"] == 0)
            #expect(result["sha256"] == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
            #expect(bench.bytes(of: bench.downloads + "/x") == [])
        }
    }

    @Test func file_isWhole_whenLengthIsNotAnnounced() async throws {
        let script: ScriptedOrigin.Script = { _, _ in
            let size = String(Self.body.count, radix: 16)
            return [
                .head("200 OK", [("Transfer-Encoding", "chunked")]), .send(size + "\r\n"), .send(Self.body),
                .send("\r\n0\r\n\r\n"),
            ]
        }
        try await Workbench.run(against: script) { origin, bench in
            let deferred = try bench.start(["type": "download", "url": .string(origin.url("/x")), "path": "x"])
            let totals = Mutex<Set<Int64?>>([])
            deferred.onProgress { update in totals.withLock { _ = $0.insert(update.total) } }
            _ = try await deferred.get()
            #expect(totals.withLock { $0 } == [nil])
            #expect(bench.bytes(of: bench.downloads + "/x") == Self.body)
        }
    }

    @Test func download_isPutOff_whileItsDiskHasLittleRoom() async throws {
        let disk = Mutex<FileOperations.Disk?>((1, .max, 99))
        var files = FileOperations.real
        files.disk = { _ in disk.withLock(\.self) }
        try await Workbench.run(
            serving: ["/x": OriginResource(Workbench.bytes(1000))], files: files, { $0.downloads.minimumFree = 100 }
        ) { origin, bench in
            let source: JSON = ["type": "download", "url": .string(origin.url("/x")), "path": "x"]
            let error = try await bench.failure(source)
            #expect(error.kind == .storage && error.postponed == 5 && error.isRetryable)
            #expect(error.message.contains("99 bytes free"))
            #expect(bench.bytes(of: bench.downloads + "/x.part") == nil)
            disk.withLock { $0 = (1, 99, 99) }
            let hopeless = try await bench.failure(source)
            #expect(hopeless.kind == .storage && hopeless.postponed == nil && !hopeless.isRetryable)
            #expect(hopeless.message.contains("larger disk"))
            for enough in [(1, .max, 1100), nil] as [FileOperations.Disk?] {
                disk.withLock { $0 = enough }
                let result = try await bench.result(.download(origin.url("/x"), to: "x", ["exists": "replace"]))
                #expect(result["size"] == 1000)
            }
        }
    }

    /// What an earlier download left takes no room from the next one.
    @Test func download_begins_inTheRoomOfItsOldPart() async throws {
        let part = Mutex("")
        var files = FileOperations.real
        files.disk = { _ in
            let taken = FileManager.default.contents(atPath: part.withLock(\.self))?.count ?? 0
            return (1, .max, 1100 - Int64(taken))
        }
        try await Workbench.run(
            serving: ["/x": OriginResource(Workbench.bytes(1000))], files: files, { $0.downloads.minimumFree = 100 }
        ) { origin, bench in
            part.withLock { $0 = bench.downloads + "/x.part" }
            try bench.write(Workbench.bytes(1000), to: bench.downloads + "/x.part")
            chmod(bench.downloads + "/x.part", 0o1600)
            let result = try await bench.result(.download(origin.url("/x"), to: "x"))
            #expect(result["size"] == 1000)
        }
    }

    @Test func download_endsWithStorage_whenItsDiskRunsFullMeanwhile() async throws {
        let enough: Int64 = 100 + 8 << 20
        let free = Mutex<[Int64]>([enough, enough, 50, 50])
        var files = FileOperations.real
        // Others take what there was when it began.
        files.disk = { _ in (1, .max, free.withLock { $0.isEmpty ? 49 : $0.removeFirst() }) }
        try await Workbench.run(
            serving: ["/x": OriginResource(Workbench.bytes(8 << 20), etag: "\"a\"")],
            files: files, { $0.downloads.minimumFree = 100 }
        ) { origin, bench in
            let source: JSON = ["type": "download", "url": .string(origin.url("/x")), "path": "x"]
            let error = try await bench.failure(source)
            #expect(error.kind == .storage && error.postponed == nil && error.isRetryable)
            #expect(error.message.contains("49 bytes free"))
            for name in ["x", "x.part"] { #expect(bench.bytes(of: bench.downloads + "/" + name) == nil) }
            free.withLock { $0 = Array(repeating: enough, count: 20) }
            #expect(try await bench.result(source)["size"]?.int == 8 << 20)
        }
    }

    @Test func download_isNotBegun_whenItsLengthExceedsRoom() async throws {
        let free = Mutex<Int64>(1099)
        var files = FileOperations.real
        files.disk = { _ in (1, 5000, free.withLock { $0 }) }
        let script: ScriptedOrigin.Script = { request, _ in
            request.path == "/small"
                ? [.head("200 OK", [("Content-Length", "1000")]), .send(String(repeating: "x", count: 400)), .hold]
                : [.head("200 OK", [("Content-Length", request.path == "/large" ? "5000" : "1000")]), .hold]
        }
        try await Workbench.run(against: script, files: files) {
            $0.downloads.minimumFree = 100
        } _: { origin, bench in
            let waiting = try await bench.failure(.download(origin.url("/small"), to: "x"))
            #expect(waiting.kind == .storage && waiting.postponed == 5 && waiting.isRetryable)
            #expect(bench.names(below: bench.downloads).isEmpty)
            let hopeless = try await bench.failure(.download(origin.url("/large"), to: "x"))
            #expect(hopeless.kind == .storage && hopeless.postponed == nil && !hopeless.isRetryable)
            // What a running download still expects is not free for another one.
            free.withLock { $0 = 1100 }
            let running = try bench.start(.download(origin.url("/small"), to: "x"))
            for await progress in running.progress where progress.completed == 400 { break }
            free.withLock { $0 = 100 + 600 + 999 }
            let other = try await bench.failure(.download(origin.url("/other"), to: "y"), job: 2)
            #expect(other.postponed == 5 && other.message.contains("other downloads need 600"), "\(other)")
            running.cancel()
        }
    }
}
