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

/// Timeout, cancel and stop end a transfer at once, whatever it does.
@Suite struct InterruptionTests {
    private static let body = Workbench.bytes(200_000)

    private func download(_ origin: ScriptedOrigin, _ more: [String: JSON] = [:]) -> JSON {
        .download(origin.url("/x"), to: "x", more)
    }

    @Test(arguments: TransferEnd.allCases) func download_endsAtOnce_whileItWaitsForItsRate(end: TransferEnd)
        async throws
    {
        // In one piece, so that once the head is there nothing is waited for but the rate.
        let answer =
            "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\nETag: \"a\"\r\n\r\n" + String(repeating: "x", count: 800)
        let clock = NIOAsyncTestingEventLoop()
        try await Workbench.run(against: { _, _ in [.send(answer), .hold] }, timers: clock) { origin, bench in
            let deferred = try bench.start(download(origin, ["rate": 1]), timeout: 50)
            await deferred.progress(reaches: 0)
            try await bench.end(deferred, by: end, clock)
            // What had come in is kept for another attempt.
            let part = bench.bytes(of: bench.downloads + "/x.part")
            #expect(part?.count == (end == .cancel ? nil : 800))
        }
    }

    @Test(arguments: TransferEnd.allCases) func download_endsAtOnce_whileItHashes(end: TransferEnd) async throws {
        // A file that never ends.
        var files = FileOperations.real
        let reads = AsyncStream.makeStream(of: Void.self)
        files.readAt = { _, _, buffer in
            reads.continuation.yield()
            return buffer.count
        }
        let clock = NIOAsyncTestingEventLoop()
        try await Workbench.run(against: { _, _ in [.hold] }) { origin, first in
            try await first.restarted(files: files, timers: clock) { bench in
                try bench.write([], to: bench.downloads + "/x")
                truncate(bench.downloads + "/x", 1 << 42)
                let deferred = try bench.start(download(origin, ["exists": "skip"]), timeout: 50)
                for await _ in reads.stream { break }
                try await bench.end(deferred, by: end, clock)
            }
        }
    }

    @Test(arguments: TransferEnd.allCases, ["url", "download"])
    func transfer_endsAtOnce_whileItsNameIsResolved(end: TransferEnd, type: String) async throws {
        let names = BlockedNames()
        let clock = NIOAsyncTestingEventLoop()
        try await Workbench.run(timers: clock, names: names.names) {
            $0.http.connectTimeout = 1000
        } _: { bench in
            var source: JSON = ["type": "url", "url": "http://a.dead/"]
            if type == "download" { source = ["type": "download", "url": "http://a.dead/", "path": "x"] }
            let deferred = try bench.start(source, timeout: 50)
            await names.lookUp()
            try await bench.end(deferred, by: end, clock)
            #expect(bench.names(below: bench.downloads) == [])
        }
        names.answer()
    }

    @Test(arguments: TransferEnd.allCases) func transfer_endsAtOnce_whileServerIsSilent(end: TransferEnd) async throws {
        let clock = NIOAsyncTestingEventLoop()
        try await Workbench.run(against: { _, _ in [.hold] }, timers: clock) { origin, bench in
            let deferred = try bench.start(download(origin), timeout: 50)
            await origin.log.reaches(1)
            try await bench.end(deferred, by: end, clock)
            await origin.clientLeaves()
        }
    }

    @Test func part_isKept_whenTransferIsStoppedWhileItIsRead() async throws {
        let script: ScriptedOrigin.Script = { request, count in
            Misbehaviour.cut(Self.body, times: 1, etag: "\"a\"")(request, count)
        }
        try await Workbench.run(against: script) { origin, bench in
            #expect(try await bench.failure(download(origin)).kind == .network)
            var files = FileOperations.real
            let reads = AsyncStream.makeStream(of: Void.self)
            let turnstile = DispatchSemaphore(value: 0)
            files.readAt = { file, offset, buffer throws(Errno) in
                reads.continuation.yield()
                turnstile.wait()
                return try FileOperations.real.readAt(file, offset, buffer)
            }
            let clock = NIOAsyncTestingEventLoop()
            try await bench.restarted(files: files, timers: clock) { second in
                let deferred = try second.start(download(origin), timeout: 50)
                for await _ in reads.stream { break }
                await clock.advanceTime(by: .seconds(50))
                turnstile.signal()
                #expect(try await second.failure(of: deferred).kind == .timeout)
                #expect(bench.names(below: bench.downloads) == ["x.part"])
            }
            let result = try await bench.result(download(origin), attempt: 2)
            #expect(result["resumedFrom"] == 100_000)
            #expect(bench.bytes(of: bench.downloads + "/x") == Self.body)
        }
    }

    /// A file system that does not answer holds up no timeout, and the next attempt waits for the end of the first.
    @Test func timeout_comes_whileFileSystemDoesNotAnswer() async throws {
        let writes = AsyncStream.makeStream(of: Void.self)
        let turnstile = DispatchSemaphore(value: 0)
        var files = FileOperations.real
        files.writeAt = { file, offset, bytes throws(Errno) in
            writes.continuation.yield()
            turnstile.wait()
            // Each lets the next one go.
            turnstile.signal()
            try FileOperations.real.writeAt(file, offset, bytes)
        }
        let result = try await nextResult(after: writes.stream, turnstile, files)
        #expect(result["size"] == 2_000_000)
    }

    @Test func file_isResumed_whenItsSyncOutlastsTheTimeout() async throws {
        let syncs = AsyncStream.makeStream(of: Void.self)
        let turnstile = DispatchSemaphore(value: 0)
        var files = FileOperations.real
        files.sync = { file throws(Errno) in
            if try !FileOperations.real.statusOfOpen(file).isDirectory {
                syncs.continuation.yield()
                turnstile.wait()
                turnstile.signal()
            }
            try FileOperations.real.sync(file)
        }
        let result = try await nextResult(after: syncs.stream, turnstile, files)
        #expect(result["size"] == 2_000_000 && result["resumedFrom"] == 1_999_999, "\(result)")
    }

    /// The result of the second attempt at a download, which starts when the first has timed out in an operation that `begins`
    /// says and that waits for the `turnstile`.
    private func nextResult(
        after begins: AsyncStream<Void>, _ turnstile: DispatchSemaphore, _ files: FileOperations
    ) async throws -> JSON {
        let clock = NIOAsyncTestingEventLoop()
        let resource = OriginResource(Workbench.bytes(2_000_000), etag: "\"1\"")
        let result = Mutex(JSON.null)
        try await Workbench.run(serving: ["/x": resource], files: files, timers: clock) { origin, bench in
            let source = JSON.download(origin.url("/x"), to: "x")
            let first = try bench.start(source, timeout: 50)
            for await _ in begins { break }
            for seconds in [50, 1] { await clock.advanceTime(by: .seconds(Int64(seconds))) }
            if case .failure(let error as JobError) = first.outcome {
                #expect(error.kind == .timeout && error.isRetryable)
            } else {
                Issue.record("It goes on behind its timeout.")
            }
            let second = try bench.start(source, attempt: 2)
            turnstile.signal()
            let end = try await second.get()
            result.withLock { $0 = end }
        }
        return result.withLock(\.self)
    }

    /// A file system that does not answer holds up its own transfer, but not the daemon.
    @Test func stop_isBounded_whenFileSystemDoesNotAnswer() async throws {
        var files = FileOperations.real
        let writes = AsyncStream.makeStream(of: Void.self)
        let turnstile = DispatchSemaphore(value: 0)
        let answers = Mutex(false)
        files.writeAt = { file, offset, bytes throws(Errno) in
            writes.continuation.yield()
            if !answers.withLock({ $0 }) { turnstile.wait() }
            try FileOperations.real.writeAt(file, offset, bytes)
        }
        let clock = NIOAsyncTestingEventLoop()
        let script: ScriptedOrigin.Script = { _, _ in
            [.head("200 OK", [("Content-Length", "200000")]), .send(Array(Self.body.dropLast())), .hold]
        }
        try await Workbench.run(against: script) { origin, first in
            try await first.restarted(files: files, timers: clock) { bench in
                let deferred = try bench.start(download(origin))
                for await _ in writes.stream { break }
                let isStopped = Mutex(false)
                let stopping = Task {
                    await bench.library.shutdown()
                    isStopped.withLock { $0 = true }
                }
                await clock.turn(by: .seconds(1)) { !isStopped.withLock { $0 } }
                await stopping.value
                #expect(deferred.outcome == nil)
                answers.withLock { $0 = true }
                turnstile.signal()
                #expect(try await bench.failure(of: deferred).kind == .cancelled)
            }
        }
    }
}
