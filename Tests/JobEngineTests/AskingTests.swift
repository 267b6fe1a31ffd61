import Dispatch
import Glibc
import JobCore
import JobModel
import JobStore
import Logging
import NIOPosix
import Synchronization
import TestSupport
import Testing

@testable import DataSources
@testable import JobEngine

@Suite struct AskingTests {
    /// From a line to its answer there are at most two changes of thread, to the store and back.
    @Test func whatAnAnswerLeadsTo_isDoneOnTheThreadThatAsked_whereTheEngineHasNothingElseToDo() async throws {
        try await Self.withEngine { engine in
            _ = await engine.probe()
            // Now and then the engine does something of its own.
            var isHere = false
            for _ in 0..<10_000 where !isHere {
                try await Task.sleep(for: .milliseconds(1))
                isHere = Self.isAnsweredHere(by: engine)
            }
            #expect(isHere)
        }
    }

    /// A spec of 1 MiB takes several milliseconds, in which nobody else would get an answer.
    @Test func longSpecOfASchedule_isNotCheckedOnTheEngine() async throws {
        try await Self.withEngine { engine in
            let owner = Caller(uid: 7, isAdmin: false)
            let key = ScheduleKey(owner: owner.uid, name: "long")
            let spec: JSON = [
                "source": ["type": "value", "value": .string(String(repeating: "x", count: 100_000))]
            ]
            let new = NewSchedule(
                key: key, timing: .every(3_600_000), zone: .utc, catchUp: .last, overlap: .skip, isSuspended: false,
                spec: spec, queue: "default")
            guard case .schedule = await engine.ask(.setSchedule(new), for: owner) else {
                Issue.record("It was not set.")
                return
            }
            // All threads that it could be checked on are busy.
            let (isFree, busy) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
            for _ in 0..<FileQueue.threads {
                engine.library.startBlocking(for: owner.uid) {
                    busy.signal()
                    isFree.wait()
                }
            }
            for _ in 0..<FileQueue.threads { busy.wait() }
            let answer = Mutex<CoreAnswer?>(nil)
            let isAnswered = AsyncStream.makeStream(of: Void.self)
            engine.ask(.runSchedule(key), for: owner) { given in
                answer.withLock { $0 = given }
                isAnswered.continuation.finish()
            }
            for _ in 0..<100 { #expect(await engine.probe()) }
            #expect(answer.withLock { $0 == nil })
            for _ in 0..<FileQueue.threads { isFree.signal() }
            for await _ in isAnswered.stream {}
            let submitted = try #require(answer.withLock(\.self)?.submitted?.first)
            #expect(try submitted.get().isCreated)
        }
    }

    private static func withEngine(_ body: (JobEngine) async throws -> Void) async throws {
        try await TemporaryDirectory.with { directory in
            let path = directory.path
            for name in ["state", "downloads", "bodies"] { mkdir(path + "/" + name, 0o700) }
            var logger = Logger(label: "asking")
            logger.logLevel = .critical
            var settings = SourceSettings()
            settings.downloads.directory = path + "/downloads"
            let library = try SourceLibrary(
                settings: settings, group: MultiThreadedEventLoopGroup.singleton, logger: logger)
            let engine = JobEngine(
                settings: EngineSettings(bodies: path + "/bodies"),
                store: try SQLiteStore(path: path + "/state") { _ in },
                library: library, logger: logger)
            try await engine.start()
            let outcome: Result<Void, any Error>
            do { outcome = .success(try await body(engine)) } catch { outcome = .failure(error) }
            await engine.stop()
            try outcome.get()
        }
    }

    private static func isAnsweredHere(by engine: JobEngine) -> Bool {
        let thread = pthread_self()
        let isHere = Mutex(false)
        engine.ask(.queues, for: Caller(uid: 0, isAdmin: true)) { _ in
            engine.afterwards { if pthread_self() == thread { isHere.withLock { $0 = true } } }
        }
        return isHere.withLock(\.self)
    }
}
