import DataSources
import Dispatch
import InMemoryStore
import JobModel
import JobCore
import JobEngine
import Synchronization
import SystemPackage
import TestOrigin
import Testing

/// Cancelling a job in each state of its run.
@Suite struct CancelTests {
    private static func cancel(_ job: JobID, _ test: TestEngine) async throws -> JobRow {
        let answer = await test.engine.ask(.change(job, .cancel), for: TestEngine.user)
        guard case .changed = answer else { throw TestEngine.Refused(answer: answer) }
        return try #require(test.store.rows.job(job))
    }

    @Test func expanding_endsAtOnce_whileTheThreadsAreBusy() async throws {
        try await TestEngine.with { test in
            let (isFree, isBusy) = (DispatchSemaphore(value: 0), AsyncStream.makeStream(of: Void.self))
            for _ in 0..<4 {
                Task {
                    await test.engine.blocking(for: TestEngine.user.uid) {
                        isBusy.continuation.yield()
                        isFree.wait()
                    }
                }
            }
            var count = 0
            for await _ in isBusy.stream {
                count += 1
                if count == 3 { break }
            }
            defer { for _ in 0..<4 { isFree.signal() } }
            let job = try await test.submit(["source": ["type": "timer", "seconds": 3600]])
            #expect(try await Self.cancel(job, test).state == .cancelled)
        }
    }

    /// A held download that its file system keeps at work is given up, and its next run waits for the end of that work.
    @Test func heldDownload_succeeds_whenItIsReleasedBeforeItsEnd() async throws {
        let (writes, written) = AsyncStream.makeStream(of: Void.self)
        let turnstile = DispatchSemaphore(value: 0)
        var files = FileOperations.real
        files.writeAt = { file, offset, bytes throws(Errno) in
            written.yield()
            turnstile.wait()
            // Each lets the next one go.
            turnstile.signal()
            try FileOperations.real.writeAt(file, offset, bytes)
        }
        let steps: [OriginStep] = [.head("200 OK", [("Content-Length", "2")]), .send("ok")]
        try await ScriptedOrigin.run({ _, _ in steps }) { origin in
            try await TestEngine.with(hasRealClock: false, files: files) { test in
                let job = try await test.submit(
                    ["source": ["type": "download", "url": .string(origin.url("/x")), "path": "x"]])
                for await _ in writes { break }
                async let held = test.engine.ask(.change(job, .hold), for: TestEngine.user)
                await test.store.until { $0.job(job)?.state == .held }
                // It was told to stop by the end of that round.
                #expect(await test.engine.probe())
                test.clock.milliseconds.withLock { $0 += 1000 }
                // The engine looks at the clock with each round.
                #expect(await test.engine.probe())
                guard case .changed = await held else { throw TestEngine.Unexpected("It is not held.") }
                _ = await test.engine.ask(.change(job, .release), for: TestEngine.user)
                await test.store.until { $0.job(job)?.state == .running }
                // Time in which a run that does not wait meets the earlier one.
                for _ in 0..<100 { await test.settle(TestEngine.user.uid) }
                turnstile.signal()
                #expect(try await test.end(of: job).state == .succeeded)
            }
        }
    }

    /// A download that is cancelled removes what it has written, and its file system may not answer.
    @Test func source_isGivenUp_whenItDoesNotEnd() async throws {
        let (unlinks, begins) = AsyncStream.makeStream(of: Void.self)
        let (writes, written) = AsyncStream.makeStream(of: Void.self)
        let release = DispatchSemaphore(value: 0)
        var files = FileOperations.real
        files.writeAt = { file, offset, bytes throws(Errno) in
            try FileOperations.real.writeAt(file, offset, bytes)
            written.yield()
        }
        files.unlink = { directory, name throws(Errno) in
            begins.yield()
            release.wait()
            // Each lets the next one go.
            release.signal()
            try FileOperations.real.unlink(directory, name)
        }
        let steps: [OriginStep] = [.head("200 OK", [("Content-Length", "200000")]), .stream(100_000), .hold]
        try await ScriptedOrigin.run({ _, _ in steps }) { origin in
            try await TestEngine.with(hasRealClock: false, files: files) { test in
                let job = try await test.submit(
                    ["source": ["type": "download", "url": .string(origin.url("/x")), "path": "x"]])
                for await _ in writes { break }
                async let cancelled = Self.cancel(job, test)
                for await _ in unlinks { break }
                #expect(await test.engine.probe())
                #expect(test.store.rows.job(job)?.state == .running)
                test.clock.milliseconds.withLock { $0 += 1000 }
                // The engine looks at the clock with each round.
                #expect(await test.engine.probe())
                #expect(try await cancelled.state == .cancelled)
                // Its end comes later, and changes nothing.
                release.signal()
            }
        }
    }
}
