@testable import DataSources
import DeferredKit
import Foundation
import JobModel
import NIOCore
import NIOEmbedded
import Synchronization
import SystemPackage
import TestOrigin
import Testing

/// How an upload ends that the server answers early, or does not read.
extension UploadTests {
    @Test(arguments: [true, false]) func earlyRefusal_endsTheUpload_whileTheServerReadsNothing(closes: Bool)
        async throws
    {
        try await Workbench.run(
            against: { _, _ in [.stopReading] + Self.answer("413 Too Large") + [closes ? .reset : .hold] },
            readsBodies: false
        ) { origin, bench in
            try bench.write([], to: bench.downloads + "/x")
            truncate(bench.downloads + "/x", 1 << 30)
            let error = try await bench.failure(upload(origin))
            // A reset can overtake the answer.
            if !closes { #expect(error.kind == .http && error.http?["status"]?.int == 413, "\(error)") }
            #expect([.http, .network].contains(error.kind))
        }
    }

    @Test func earlySuccess_isNetwork_asTheServerHasNotReadTheFile() async throws {
        try await Workbench.run(
            against: { _, _ in [.stopReading] + Self.answer("200 OK") + [.hold] }, readsBodies: false
        ) { origin, bench in
            try bench.write([], to: bench.downloads + "/x")
            truncate(bench.downloads + "/x", 1 << 30)
            let error = try await bench.failure(upload(origin))
            #expect(error.kind == .network && error.isRetryable, "\(error)")
        }
    }

    @Test func earlySuccess_isNetwork_whenOnlyAnEarlierServerReadTheFile() async throws {
        let (size, gate) = (Int64(32 << 20), OriginGate())
        try await ScriptedOrigin.run(
            readsBodies: false, { _, _ in [.stopReading] + Self.answer("200 OK") + [.hold] }
        ) { other in
            try await Workbench.run(
                against: { _, _ in [.wait(gate)] + Self.answer("307 There", [("Location", other.url("/x"))]) },
                readsBodies: false
            ) { origin, bench in
                try bench.write([], to: bench.downloads + "/x")
                truncate(bench.downloads + "/x", off_t(size))
                let deferred = try bench.start(upload(origin))
                deferred.onProgress { if $0.completed == size { gate.open() } }
                let error = try await bench.failure(of: deferred)
                #expect(error.kind == .network && error.isRetryable, "\(error)")
            }
        }
    }

    /// The pauses of the rate are ours, not the server's.
    @Test(arguments: [true, false]) func rateOfTheQueue_isNoIdleness(isPaced: Bool) async throws {
        let clock = ToldClock()
        try await Workbench.run(against: { _, _ in Self.answer() }, timers: clock) {
            if isPaced { ($0.http.lowSpeed.bytes, $0.http.lowSpeed.seconds) = (1000, 2.5) }
        } _: { origin, bench in
            try bench.write([1, 2, 3, 4, 5], to: bench.downloads + "/x")
            var context = bench.context(1)
            context.queueRate = RateLimiter(bytesPerSecond: 1)
            let deferred = bench.library.start(
                try bench.parameters(upload(origin, "x", isPaced ? [:] : ["idleTimeout": 2.5])), context)
            var sleeps = clock.sleeps.stream.makeAsyncIterator()
            for _ in 0..<5 {
                await sleeps.next()
                try await Workbench.settle()
                await clock.loop.advanceTime(by: .seconds(1))
            }
            #expect(try await deferred.get()["size"] == 5)
            #expect(origin.log.last("/store")?.body == [1, 2, 3, 4, 5])
        }
    }

    /// More than the system keeps on the way is still to be sent then.
    @Test(arguments: [false, true]) func serverThatGoesAway_isNetwork_whileTheFileIsSent(resetting: Bool) async throws {
        let script: ScriptedOrigin.Script = { _, _ in [resetting ? .reset : .close] }
        try await Workbench.run(against: script, readsBodies: false) { origin, bench in
            try bench.write([], to: bench.downloads + "/x")
            truncate(bench.downloads + "/x", 1 << 30)
            let error = try await bench.failure(upload(origin))
            #expect(error.kind == .network && error.isRetryable, "\(error)")
            #expect(error.message.contains("127.0.0.1"))
        }
    }

    @Test func successThatBegins_counts_onceTheFileWasRead() async throws {
        let gate = OriginGate()
        try await Workbench.run(
            against: { _, _ in [.head("200 OK", [("Content-Length", "2")]), .send("o"), .wait(gate), .send("k")] },
            readsBodies: false
        ) { origin, bench in
            try bench.write(Self.content, to: bench.downloads + "/x")
            let deferred = try bench.start(upload(origin))
            deferred.onProgress { if $0.completed == Int64(Self.content.count) { gate.open() } }
            #expect(try await deferred.get()["sha256"]?.string == Self.digest(Self.content))
        }
    }

    @Test func serverThatReadsNothing_isTimeout() async throws {
        let clock = NIOAsyncTestingEventLoop()
        try await Workbench.run(
            against: { _, _ in [.stopReading, .hold] }, readsBodies: false, timers: clock
        ) { origin, bench in
            try bench.write([], to: bench.downloads + "/x")
            truncate(bench.downloads + "/x", 1 << 30)
            let deferred = try bench.start(upload(origin))
            await origin.log.reaches(1)
            await clock.turn(by: .seconds(1)) { deferred.outcome == nil }
            let error = try await bench.failure(of: deferred)
            #expect(error.kind == .timeout && error.isRetryable)
        }
    }

    /// Users may name files on file systems that hang.
    @Test func otherWork_goesOn_whileFilesHoldUpAllThreadsForThem() async throws {
        // More than is parsed on an event loop, and than is received in memory.
        let document = Array(("[\"" + String(repeating: "x", count: 1 << 20) + "\"]").utf8)
        try await ScriptedOrigin.run { entry, _ in
            guard entry.method == "GET" else { return Self.answer() }
            return [.head("200 OK", [("Content-Length", "\(document.count)")]), .send(document)]
        } _: { origin in
            let (held, begins) = AsyncStream.makeStream(of: Void.self)
            let release = DispatchSemaphore(value: 0)
            var files = FileOperations.real
            files.readAt = { file, offset, buffer throws(Errno) in
                // Not of the document, which is read on other threads.
                guard buffer.count == 3 else { return try FileOperations.real.readAt(file, offset, buffer) }
                begins.yield()
                release.wait()
                // Each lets the next one go.
                release.signal()
                return try FileOperations.real.readAt(file, offset, buffer)
            }
            try await ProgramSourceTests.run(files: files) { bench async throws in
                try bench.write([1, 2, 3], to: bench.downloads + "/x")
                let uploads = try (0..<FileQueue.threads).map { _ in try bench.start(upload(origin)) }
                var count = 0
                for await _ in held {
                    count += 1
                    if count == FileQueue.threads { break }
                }
                // Each of them would wait for ever.
                #expect(await bench.library.threads(for: 7).run { true })
                let source: JSON = ["type": "json", "url": .string(origin.url("/document")), "select": "/0"]
                #expect(try await bench.result(source, job: 2)["unknown"] == nil)
                let input: JSON = .string(String(repeating: "x", count: 1_000_000))
                #expect(
                    try await bench.result(ProgramSourceTests.shell("wc -c", ["input": input]), job: 3)["output"]
                        == "1000000")
                release.signal()
                for upload in uploads { _ = try await upload.get() }
            }
        }
    }

    // MARK: Ends

    /// Whatever a file system does, an upload that is not wanted any more does not wait for it.
    @Test(arguments: TransferEnd.allCases, [true, false])
    func upload_endsAtOnce_whileItsFileIsReadOrItsServerDoesNotRead(end: TransferEnd, isFile: Bool) async throws {
        let (isReading, begins) = AsyncStream.makeStream(of: Void.self)
        let release = DispatchSemaphore(value: 0)
        var files = FileOperations.real
        files.readAt = { file, offset, buffer throws(Errno) in
            if isFile, offset > 0 {
                begins.yield()
                release.wait()
            }
            return try FileOperations.real.readAt(file, offset, buffer)
        }
        let clock = NIOAsyncTestingEventLoop()
        try await Workbench.run(
            against: { _, _ in [.stopReading, .hold] }, readsBodies: false, files: files, timers: clock
        ) { origin, bench in
            try bench.write([], to: bench.downloads + "/x")
            truncate(bench.downloads + "/x", 1 << 30)
            let deferred = try bench.start(upload(origin), timeout: 50)
            if isFile { for await _ in isReading { break } } else { await origin.log.reaches(1) }
            switch end {
            case .timeout:
                await clock.advanceTime(by: .seconds(50))
                #expect(try await bench.failure(of: deferred).kind == .timeout)
            case .cancel:
                deferred.cancel()
                await #expect(throws: CancellationError.self) { try await deferred.get() }
            case .stop:
                async let stopped: Void = bench.library.shutdown()
                #expect(try await bench.failure(of: deferred).kind == .cancelled)
                release.signal()
                await stopped
            }
            release.signal()
        }
    }
}
