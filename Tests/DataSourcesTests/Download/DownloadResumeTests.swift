@testable import DataSources
import DeferredKit
import Foundation
import JobModel
import NIOCore
import NIOEmbedded
import Testing
import Synchronization
import TestOrigin

@Suite struct DownloadResumeTests {
    static let first = Workbench.bytes(200_000, seed: 1)
    static let second = Workbench.bytes(200_000, seed: 2)

    func download(_ origin: ScriptedOrigin, _ more: [String: JSON] = [:]) -> JSON {
        .source("download", origin.url("/x"), ["path": "x"].merging(more) { _, own in own })
    }

    func part(_ bench: Workbench) -> [UInt8]? { bench.bytes(of: bench.downloads + "/x.part") }

    @Test(arguments: [true, false]) func retry_resumes_whenValidatorIsStrong(resetting: Bool) async throws {
        let script = Misbehaviour.cut(Self.first, times: 1, etag: "\"a\"", resetting: resetting)
        try await Workbench.run(against: script) { origin, bench in
            let error = try await bench.failure(download(origin))
            #expect(error.kind == .network)
            let kept = try #require(part(bench)).count
            #expect(resetting || kept == 100_000)
            let result = try await bench.result(download(origin), attempt: 2)
            #expect(result["resumedFrom"]?.int == (kept > 0 ? kept : 0))
            #expect(result["status"] == (kept > 0 ? 206 : 200))
            #expect(result["attempts"] == 2)
            #expect(result["size"] == 200_000)
            #expect(bench.bytes(of: bench.downloads + "/x") == Self.first)
            #expect(bench.names(below: bench.downloads) == ["x"])
            guard kept > 0 else { return }
            #expect(origin.log.last("/x")?.headers["range"] == "bytes=\(kept)-")
            #expect(origin.log.last("/x")?.headers["if-range"] == "\"a\"")
        }
    }

    @Test func retry_resumesByDate_whenThereIsNoTag() async throws {
        let date = "Wed, 31 Dec 2025 12:00:00 GMT"
        let body = Self.first
        let script: ScriptedOrigin.Script = { request, count in
            guard count > 0 else {
                return [
                    .head("200 OK", [("Content-Length", "\(body.count)"), ("Last-Modified", date)]),
                    .send(Array(body.prefix(70_000))), .close,
                ]
            }
            return Misbehaviour.correct(body, etag: nil, to: request)
        }
        try await Workbench.run(against: script) { origin, bench in
            _ = try await bench.failure(download(origin))
            // The script's origin takes any If-Range but a tag's, so ask without one.
            #expect(part(bench)?.count == 70_000)
            _ = try await bench.result(download(origin), attempt: 2)
            #expect(origin.log.last("/x")?.headers["if-range"] == date)
            #expect(bench.bytes(of: bench.downloads + "/x") == body)
        }
    }

    @Test(arguments: [nil, "W/\"a\""]) func failure_keepsNothing_whenValidatorIsNotStrong(etag: String?) async throws {
        try await Workbench.run(
            against: Misbehaviour.cut(Self.first, times: 1, etag: etag)
        ) { origin, bench in
            _ = try await bench.failure(download(origin))
            #expect(bench.names(below: bench.downloads) == [])
            let result = try await bench.result(download(origin), attempt: 2)
            #expect(result["resumedFrom"] == 0)
            #expect(origin.log.last("/x")?.headers["range"] == nil)
        }
    }

    @Test func retry_startsOver_whenFileHasChanged() async throws {
        let script = Misbehaviour.changes(Self.first, to: Self.second, etags: ("\"a\"", "\"b\""))
        try await Workbench.run(against: script) { origin, bench in
            _ = try await bench.failure(download(origin))
            let result = try await bench.result(download(origin), attempt: 2)
            #expect(result["resumedFrom"] == 0)
            #expect(result["etag"] == "\"b\"")
            #expect(bench.bytes(of: bench.downloads + "/x") == Self.second)
            #expect(origin.log.count() == 2)
        }
    }

    /// Servers that answer a range wrongly; each gives the other version with the first one's length.
    @Test(arguments: [
        [("ETag", "\"b\""), ("Content-Range", "bytes 100000-199999/200000")],
        [("Content-Range", "bytes 100000-199999/200000")],
        [("ETag", "\"a\"")],
        [("ETag", "\"a\""), ("Content-Range", "bytes 99999-199999/200000")],
        [("ETag", "\"a\""), ("Content-Range", "bytes 100000-199999/300000")],
        [("ETag", "\"a\""), ("Content-Range", "bytes 100000-150000/200000")],
        [("ETag", "\"a\""), ("Content-Range", "pages 1-2/3")],
    ])
    func retry_startsOver_whenPartialResponseDoesNotFit(fields: [(name: String, value: String)]) async throws {
        let (first, second) = (Self.first, Self.second)
        let script: ScriptedOrigin.Script = { request, count in
            if count == 0 { return Misbehaviour.cut(first, etag: "\"a\"")(request, 0) }
            guard request.headers["range"] != nil else {
                return Misbehaviour.correct(second, etag: "\"b\"", to: request)
            }
            return [
                .head("206 Partial Content", fields + [("Content-Length", "100000")]),
                .send(Array(second[100_000...])),
            ]
        }
        try await Workbench.run(against: script) { origin, bench in
            _ = try await bench.failure(download(origin))
            let result = try await bench.result(download(origin), attempt: 2)
            #expect(result["resumedFrom"] == 0)
            #expect(result["status"] == 200)
            #expect(bench.bytes(of: bench.downloads + "/x") == second)
            #expect(origin.log.count() == 3)
        }
    }

    /// If neither answer has a length, the end of the second proves nothing.
    @Test func retry_startsOver_whenNobodyKnowsTheLength() async throws {
        let body = Self.first
        let script: ScriptedOrigin.Script = { request, count in
            if count == 0 {
                return [.head("200 OK", [("ETag", "\"a\"")]), .send(Array(body[..<100_000])), .reset]
            }
            guard request.headers["range"] != nil else {
                return [.head("200 OK", [("Content-Length", "\(body.count)"), ("ETag", "\"a\"")]), .send(body)]
            }
            let fields = [("ETag", "\"a\""), ("Content-Range", "bytes \(request.range?.start ?? 0)-199999/*")]
            return [.head("206 Partial Content", fields), .send([1]), .close]
        }
        try await Workbench.run(against: script) { origin, bench in
            _ = try await bench.failure(download(origin))
            let result = try await bench.result(download(origin), attempt: 2)
            #expect(result["size"] == 200_000 && result["resumedFrom"] == 0, "\(result)")
            #expect(bench.bytes(of: bench.downloads + "/x") == body)
        }
    }

    @Test(arguments: ["400", "403", "404", "406", "416", "429", "500", "501", "503"])
    func retry_startsOver_whenServerRefusesARange(status: String) async throws {
        let body = Self.first
        let script: ScriptedOrigin.Script = { request, count in
            if count == 0 { return Misbehaviour.cut(body, etag: "\"a\"")(request, 0) }
            return request.range == nil
                ? Misbehaviour.correct(body, etag: "\"a\"", to: request) : [.head(status, [("Content-Length", "0")])]
        }
        try await Workbench.run(against: script) { origin, bench in
            _ = try await bench.failure(download(origin))
            let result = try await bench.result(download(origin), attempt: 2)
            #expect(result["size"] == 200_000 && result["resumedFrom"] == 0, "\(result)")
            #expect(bench.bytes(of: bench.downloads + "/x") == body)
            #expect(origin.log.count() == 3)
        }
    }

    @Test func part_survives_whenServerFailsInBetween() async throws {
        let body = Self.first
        let script: ScriptedOrigin.Script = { request, count in
            switch count {
            case 0: Misbehaviour.cut(body, etag: "\"a\"")(request, 0)
            case 1, 2: [.head("503 Service Unavailable", [("Content-Length", "0"), ("Retry-After", "3")])]
            default: Misbehaviour.correct(body, etag: "\"a\"", to: request)
            }
        }
        try await Workbench.run(against: script) { origin, bench in
            _ = try await bench.failure(download(origin))
            let error = try await bench.failure(download(origin), attempt: 2)
            #expect(error.http?["status"]?.int == 503)
            #expect(error.retryAfter == 3)
            let result = try await bench.result(download(origin), attempt: 3)
            #expect(result["resumedFrom"] == 100_000)
            #expect(bench.bytes(of: bench.downloads + "/x") == body)
        }
    }

    @Test func part_isOnlyTrustedAsFarAsSynced_afterReboot() async throws {
        var files = FileOperations.real
        files.bootID = "an earlier boot"
        try await Workbench.run(
            against: Misbehaviour.cut(Self.first, times: 1, etag: "\"a\""), files: files
        ) { origin, bench in
            _ = try await bench.failure(download(origin))
            var note = try #require(bench[checkpoint: 1]?.object)
            for (synced, start) in [(0, 0), (40_000, 40_000)] {
                note["synced"] = synced > 0 ? .string("0-\(synced)") : ""
                note["boot"] = "another boot"
                bench[checkpoint: 1] = .object(note)
                // What was not synced may be anything.
                let handle = try #require(FileHandle(forWritingAtPath: bench.downloads + "/x.part"))
                try handle.seek(toOffset: UInt64(max(synced, 1)))
                try handle.write(contentsOf: Data(repeating: 0, count: 10_000))
                try handle.close()
                guard synced > 0 else { continue }
                let result = try await bench.result(download(origin), attempt: 2)
                #expect(result["resumedFrom"]?.int == start)
            }
            #expect(bench.bytes(of: bench.downloads + "/x")?.count == 200_000)
        }
    }

    /// As after kill -9: the first run never ends, and a second one begins with what was noted.
    @Test func secondRun_resumes_whereFirstOneWasKilled() async throws {
        let body = Workbench.bytes(3_000_000)
        let script: ScriptedOrigin.Script = { request, count in
            count == 0
                ? [
                    .head("200 OK", [("Content-Length", "\(body.count)"), ("ETag", "\"a\"")]),
                    .send(Array(body.prefix(2_000_000))), .hold,
                ] : Misbehaviour.correct(body, etag: "\"a\"", to: request)
        }
        try await Workbench.run(against: script) { origin, bench in
            let killed = try bench.start(download(origin))
            await killed.progress(reaches: 2_000_000)
            #expect(bench[checkpoint: 1] != nil)
            try await bench.restarted { second in
                let result = try await second.result(download(origin))
                #expect(result["resumedFrom"] == 2_000_000)
                #expect(second.bytes(of: second.downloads + "/x") == body)
            }
            killed.cancel()
            #expect(bench.names(below: bench.downloads) == ["x"])
        }
    }

    private static func held(_ body: [UInt8]) -> ScriptedOrigin.Script {
        { request, count in
            count == 0
                ? [
                    .head("200 OK", [("Content-Length", "\(body.count)"), ("ETag", "\"a\"")]),
                    .send(Array(body.prefix(100_000))), .hold,
                ] : Misbehaviour.correct(body, etag: "\"a\"", to: request)
        }
    }

    @Test func retry_resumes_afterAttemptTimedOut() async throws {
        let clock = NIOAsyncTestingEventLoop()
        try await Workbench.run(against: Self.held(Self.first), timers: clock) { origin, bench in
            let timedOut = try bench.start(download(origin), timeout: 5)
            await timedOut.progress(reaches: 100_000)
            await clock.advanceTime(by: .seconds(5))
            let error = try await bench.failure(of: timedOut)
            #expect(error.kind == .timeout)
            #expect(error.isRetryable)
            await origin.clientLeaves()
            let result = try await bench.result(download(origin), attempt: 2, timeout: 100)
            #expect(result["resumedFrom"] == 100_000)
            #expect(bench.bytes(of: bench.downloads + "/x") == Self.first)
        }
    }

    @Test func nextRun_resumes_afterDaemonStopped() async throws {
        try await Workbench.run(against: Self.held(Self.first)) { origin, bench in
            try await bench.restarted { stopping in
                let deferred = try stopping.start(download(origin))
                await deferred.progress(reaches: 100_000)
                await stopping.library.shutdown()
                guard case .failure(let error as JobError) = deferred.outcome else {
                    Issue.record("The transfer is still running after the shutdown.")
                    return
                }
                #expect(error.kind == .cancelled)
                bench[checkpoint: 1] = stopping[checkpoint: 1]
            }
            let result = try await bench.result(download(origin))
            #expect(result["resumedFrom"] == 100_000)
            #expect(bench.bytes(of: bench.downloads + "/x") == Self.first)
        }
    }

    /// The file got its name, but the daemon ended before that was stored: the job must not trip over its own file.
    @Test(arguments: ["fail", "skip", "rename"]) func secondRun_findsItsOwnFile(exists: String) async throws {
        try await Workbench.run(
            against: { request, _ in Misbehaviour.correct(Self.first, etag: "\"a\"", to: request) }
        ) { origin, bench in
            let more: [String: JSON] = ["exists": .string(exists)]
            if exists == "rename" { try bench.write([1], to: bench.downloads + "/x") }
            let result = try await bench.result(download(origin, more))
            let names = bench.names(below: bench.downloads)
            try await bench.restarted { second in
                let again = try await second.result(download(origin, more), attempt: 2)
                #expect(again == result)
                #expect(second.names(below: second.downloads) == names)
            }
            #expect(origin.log.count() == 1)
            guard exists != "skip" else { return }
            // One of another job, and the second attempt of one that its user has retried.
            for job: JobID in [2, 1] {
                var context = bench.context(job, attempt: 2)
                context.linkStartedAt = Timestamp(milliseconds: 2)
                let source = try bench.library.start(bench.parameters(download(origin, more)), context)
                if exists == "fail" {
                    #expect(try await bench.failure(of: source).kind == .exists)
                } else {
                    #expect(try await source.get()["path"] != result["path"])
                }
            }
        }
    }

    @Test func smallFile_isNotNoted() async throws {
        // However slow the machine is, no time passes.
        try await Workbench.run(
            against: { request, _ in Misbehaviour.correct(Self.first, etag: "\"a\"", to: request) },
            timers: NIOAsyncTestingEventLoop()
        ) { origin, bench in
            _ = try await bench.result(download(origin))
            #expect(bench.savedNotes == 0)
        }
    }

    @Test func largeFile_isSyncedAndNoted_nowAndThen() async throws {
        let size: Int64 = 2 << 20
        let gate = OriginGate()
        let script: ScriptedOrigin.Script = { _, _ in
            [
                .head("200 OK", [("Content-Length", "\(size + 1)"), ("ETag", "\"a\"")]), .stream(Int(size)),
                .wait(gate),
                .send([0]),
            ]
        }
        let clock = NIOAsyncTestingEventLoop()
        // Longer than the clock turns.
        try await Workbench.run(against: script, timers: clock) {
            $0.http.idleTimeout = 86_400
        } _: { origin, bench in
            let deferred = try bench.start(download(origin))
            await deferred.progress(reaches: size)
            await clock.turn(by: .milliseconds(10)) { bench.savedNotes < 2 }
            let synced = try #require(bench[checkpoint: 1]?["synced"]?.string.flatMap { ByteRanges($0) })
            #expect(synced.prefix == size)
            gate.open()
            _ = try await deferred.get()
        }
    }
}
