import Dispatch
import Glibc
import JobCore
import JobModel
import JobStore
import Logging
import LoopTasks
import NIOPosix
import Synchronization
import SystemPackage
import TestOrigin
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

    /// The core takes what it is told last for what is stored. Numbers are given in the order in which jobs are stored, and
    /// each answer is brought by the event loop that asked, or by the store's thread where many are under way.
    @Test func answersOfTheStore_comeInItsOrder_whoeverBringsThem() async throws {
        final class Numbers: Sendable {
            let given = Mutex<[JobID]>([])
        }
        try await Self.withEngine { engine in
            let owner = Caller(uid: 7, isAdmin: false)
            let admitted = try engine.admission.spec(
                ["source": ["type": "value", "value": 1], "delay": 86_400], from: owner)
            let numbers = Numbers()
            @Sendable func submit(on loop: LoopExecutor) async {
                await withCheckedContinuation { continuation in
                    loop.submit {
                        engine.ask(.submit([NewJob(admitted)]), for: owner, on: loop) { answer in
                            let job = try? answer.submitted?.first?.get().job
                            numbers.given.withLock { $0.append(job ?? 0) }
                            continuation.resume()
                        }
                    }
                }
            }
            // One at a time first, which their loops bring; then more and more at once.
            for width in [1, 1, 2, 3, 6, 12] {
                await withTaskGroup(of: Void.self) { group in
                    for _ in 0..<width {
                        let loop = LoopExecutor(MultiThreadedEventLoopGroup.singleton.next())
                        group.addTask { for _ in 0..<100 { await submit(on: loop) } }
                    }
                }
            }
            let given = numbers.given.withLock(\.self)
            #expect(given.count == 2_500 && given == given.sorted())
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
                spec: spec, queues: [])
            guard case .schedule = await engine.ask(.setSchedule(new), for: owner) else {
                Issue.record("It was not set.")
                return
            }
            // All threads that it could be checked on are busy.
            let (isFree, busy) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
            for _ in 0..<FileQueue.ownThreads {
                engine.library.startBlocking(for: owner.uid) {
                    busy.signal()
                    isFree.wait()
                }
            }
            for _ in 0..<FileQueue.ownThreads { busy.wait() }
            let answer = Mutex<CoreAnswer?>(nil)
            let isAnswered = AsyncStream.makeStream(of: Void.self)
            engine.ask(.runSchedule(key), for: owner) { given in
                answer.withLock { $0 = given }
                isAnswered.continuation.finish()
            }
            for _ in 0..<100 { #expect(await engine.probe()) }
            #expect(answer.withLock { $0 == nil })
            for _ in 0..<FileQueue.ownThreads { isFree.signal() }
            for await _ in isAnswered.stream {}
            let submitted = try #require(answer.withLock(\.self)?.submitted?.first)
            #expect(try submitted.get().isCreated)
        }
    }

    /// Who watches, and is gone after some events.
    private final class Subscriber: JobSubscriber {
        private let received = Mutex(0)
        private let most: Int
        let isOver = AsyncStream.makeStream(of: Void.self)

        init(most: Int) { self.most = most }

        var count: Int { received.withLock(\.self) }
        var isGone: Bool { count >= most }

        func receive(_ event: JobEvent) {
            received.withLock { $0 += 1 }
            if event.isLast, event.job == 1 { isOver.continuation.finish() }
        }

        func receive(_ batch: ProgressBatch) {}
    }

    /// Sixty million notifications of one list went to connections that had ended with the first thousands.
    @Test func subscriber_isToldNoMore_onceItIsGone() async throws {
        try await Self.withEngine { engine in
            let owner = Caller(uid: 7, isAdmin: false)
            let (stays, goes) = (Subscriber(most: .max), Subscriber(most: 3))
            for subscriber in [goes, stays] {
                let id = engine.nextID()
                engine.register(subscriber, as: id, of: owner.uid)
                let scope = WatchScope(.all, includesChildren: true)
                guard case .watching = await engine.ask(.watch(scope, id), for: owner) else {
                    throw StoreError(.read, "It is not watched.")
                }
            }
            let items = JSON.array((0..<50).map { JSON($0) })
            let child: JSON = ["source": ["type": "value", "value": 1]]
            let list = try engine.admission.spec(["source": ["type": "each", "in": items, "job": child]], from: owner)
            let new = NewJob(list)
            #expect(try await engine.ask(.submit([new]), for: owner).submitted?.first?.get().job == 1)
            for await _ in stays.isOver.stream {}
            #expect(stays.count >= 100 && goes.count == 3)
        }
    }

    /// Whoever cancels a download on a file system that does not answer waits a second, and nobody else does.
    @Test func cancel_isBounded_whenFileSystemDoesNotAnswer() async throws {
        let (unlinks, begins) = AsyncStream.makeStream(of: Void.self)
        let (writes, written) = AsyncStream.makeStream(of: Void.self)
        let release = DispatchSemaphore(value: 0)
        var files = FileOperations.real
        files.write = { file, bytes throws(Errno) in
            try FileOperations.real.write(file, bytes)
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
            try await Self.withEngine(files: files) { engine in
                let owner = Caller(uid: 7, isAdmin: false)
                let spec = try engine.admission.spec(
                    ["source": ["type": "download", "url": .string(origin.url("/x")), "path": "x"]], from: owner)
                let job = try #require(
                    try await engine.ask(.submit([NewJob(spec)]), for: owner).submitted?.first?.get().job)
                for await _ in writes { break }
                let cancel = Task { await engine.ask(.cancel(job), for: owner) }
                for await _ in unlinks { break }
                _ = await engine.ask(.queues, for: owner)
                guard case .job(let view) = await cancel.value else { return #expect(Bool(false)) }
                #expect(view.job.state == .cancelled)
                release.signal()
            }
        }
    }

    static func withEngine(
        files: FileOperations = .real, _ change: (inout EngineSettings) -> Void = { _ in },
        clock: EngineClock = .system,
        _ body: (JobEngine) async throws -> Void
    ) async throws {
        try await TemporaryDirectory.with { directory in
            let path = directory.path
            for name in ["state", "downloads", "bodies"] { mkdir(path + "/" + name, 0o700) }
            var logger = Logger(label: "asking")
            logger.logLevel = .critical
            var settings = SourceSettings()
            settings.downloads.directory = path + "/downloads"
            let library = try SourceLibrary(
                settings: settings, group: MultiThreadedEventLoopGroup.singleton, logger: logger, files: files)
            var engineSettings = EngineSettings(bodies: path + "/bodies")
            change(&engineSettings)
            let engine = JobEngine(
                settings: engineSettings, store: try SQLiteStore(path: path + "/state") { _ in }, library: library,
                clock: clock, logger: logger)
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
