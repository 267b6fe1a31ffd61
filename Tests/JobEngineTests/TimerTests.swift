import DataSources
import Foundation
import JobModel
import JobStore
import Logging
import NIOCore
import NIOEmbedded
import NIOPosix
import Testing

@testable import JobEngine

/// Timers by a clock that the test turns.
@Suite struct TimerTests {
    private let root = Caller(uid: 0, isAdmin: true)

    /// An engine on the state in `folder` that is started at `time`, in milliseconds.
    private func engine(in folder: String, at time: Int64, timers: NIOAsyncTestingEventLoop) async throws -> JobEngine {
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        let engine = JobEngine(
            settings: EngineSettings(bodies: folder), store: try SQLiteStore(path: folder),
            library: try SourceLibrary(
                settings: SourceSettings(), group: MultiThreadedEventLoopGroup.singleton, timers: timers, logger: logger
            ),
            clock: EngineClock(now: { Timestamp(milliseconds: time) }, random: { 0 }), logger: logger)
        try await engine.start()
        return engine
    }

    private func state(of job: JobID, in engine: JobEngine) async throws -> JobState {
        try await engine.visible(job, to: root).state
    }

    @Test func timer_endsAsItWould_withoutARestart() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "deferd-timer-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let first = NIOAsyncTestingEventLoop()
        var engine = try await engine(in: folder, at: 1_000_000, timers: first)
        let admitted = try engine.admission.spec(["source": ["type": "timer", "seconds": 5]], from: root)
        let request = JobEngine.SubmitRequest(admitted, caller: root, watcher: nil)
        let job = try #require(try await engine.submit([request]).first?.get().job)
        #expect(await engine.probe(), "its beginning is stored behind this")
        #expect(try await state(of: job, in: engine) == .running)
        await engine.stop()

        let second = NIOAsyncTestingEventLoop()
        engine = try await self.engine(in: folder, at: 1_002_500, timers: second)
        await second.advanceTime(by: .milliseconds(2_499))
        #expect(try await state(of: job, in: engine) == .running)
        await second.advanceTime(by: .milliseconds(1))
        let running = engine
        let ended = await withCheckedContinuation { continuation in
            // Owned by the test; it ends with the wait.
            Task {
                _ = try await running.wait(for: [job], timeout: nil, caller: root) { result in
                    continuation.resume(returning: (try? result.get())?.count)
                }
            }
        }
        #expect(ended == 1)
        #expect(try await state(of: job, in: engine) == .succeeded)
        await engine.stop()
        await first.shutdownGracefully()
        await second.shutdownGracefully()
    }
}
