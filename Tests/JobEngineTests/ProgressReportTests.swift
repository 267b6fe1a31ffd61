import DataSources
import Foundation
import JobModel
import JobStore
import Logging
import NIOPosix
import Synchronization
import Testing

@testable import JobEngine

/// Who is told of the progress of running jobs, and how often.
@Suite struct ProgressReportTests {
    private final class Watcher: JobWatcher {
        let batches = Mutex<[ProgressBatch]>([])
        func receive(_ event: JobEvent) {}
        func receive(_ batch: ProgressBatch) { batches.withLock { $0.append(batch) } }

        /// The counts of merged reports in each batch.
        var coalesced: [[Int]] { batches.withLock { $0.map { $0.rows.map(\.coalesced) } } }

        /// The jobs of each batch since it was last asked.
        func take() -> [[JobID]] {
            batches.withLock { batches in
                defer { batches = [] }
                return batches.map { $0.rows.map(\.job) }
            }
        }
    }

    private let root = Caller(uid: 0, isAdmin: true)

    private let own = Caller(uid: 1, isAdmin: false)

    /// An engine that is not started, so that intervals end only where the test says so.
    private func run(_ body: @Sendable (isolated JobEngine) throws -> Void) async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "deferd-engine-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        let engine = JobEngine(
            settings: EngineSettings(bodies: folder), store: try SQLiteStore(path: folder),
            library: try SourceLibrary(
                settings: SourceSettings(), group: MultiThreadedEventLoopGroup.singleton, logger: logger),
            logger: logger)
        let outcome: Result<Void, any Error>
        do { outcome = .success(try await body(engine)) } catch { outcome = .failure(error) }
        await engine.stop()
        try outcome.get()
    }

    /// A running job.
    private func job(_ id: JobID, owner: UInt32 = 1, tags: [JSON] = [], parent: JobID? = nil) throws -> Job {
        let spec = try JobSpecReader.spec(["source": ["type": "error"], "tags": .array(tags)], limits: JobLimits())
        return Job(
            id: id, spec: spec, owner: owner, parent: parent.map { Job.Parent(job: $0, link: 0, index: 0, depth: 1) },
            state: .running, createdAt: Timestamp(milliseconds: 0))
    }

    @Test func watcher_isToldOnce_ofAllJobsOfAnInterval() async throws {
        let watchers = (0..<100).map { _ in Watcher() }
        try await run { engine in
            for watcher in watchers { _ = engine.addWatch(WatchScope(.all), root, watcher) }
            let cells = try (1...50).map { engine.hold(try job($0)).progress }
            for bytes in 1...3 as ClosedRange<Int64> {
                for cell in cells { cell.report(Progress(completed: bytes, total: 10)) }
            }
            engine.report(250)
            for watcher in watchers {
                let batches = watcher.batches.withLock(\.self)
                #expect(batches.map { $0.rows.map(\.job) } == [Array(1...50)])
                #expect(batches.allSatisfy { $0.rows.allSatisfy { $0.progress.completed == 3 && $0.coalesced == 2 } })
                #expect(batches.first === watchers.last?.batches.withLock(\.first), "one for all")
            }
            for watcher in watchers { _ = watcher.take() }
            engine.report(250)
            #expect(watchers[0].take().isEmpty, "there is nothing new")
            cells[6].report(Progress(completed: 4, total: 10))
            engine.report(1000)
            #expect(watchers[0].take().isEmpty, "it is not their interval")
            engine.report(250)
            #expect(watchers[0].take() == [[7]])
        }
    }

    @Test func watcher_isToldOnce_howeverItsJobsAreWatched() async throws {
        let (numbers, tag, all, other, below) = (Watcher(), Watcher(), Watcher(), Watcher(), Watcher())
        try await run { engine in
            _ = engine.addWatch(WatchScope(.jobs([1, 3]), includesChildren: true), own, numbers)
            _ = engine.addWatch(WatchScope(.tag("t")), own, tag)
            _ = engine.addWatch(WatchScope(.all), own, all)
            _ = engine.addWatch(WatchScope(.all), Caller(uid: 2, isAdmin: false), other)
            _ = engine.addWatch(WatchScope(.tag("t"), includesChildren: true), root, below)
            let jobs = [
                try job(1, tags: ["t", "u"]), try job(2), try job(3, tags: ["t"]), try job(4, owner: 2, tags: ["t"]),
                try job(5, parent: 1),
            ]
            let cells = jobs.map { engine.hold($0).progress }
            for cell in cells { cell.report(Progress(completed: 1, total: 10)) }
            engine.report(250)
            #expect(numbers.take() == [[1, 3, 5]])
            #expect(tag.take() == [[1, 3]])
            #expect(all.take() == [[1, 2, 3]])
            #expect(other.take() == [[4]])
            #expect(below.take() == [[1, 3, 4, 5]])
        }
    }

    @Test func watchers_countWhatWasMerged_byTheirOwnInterval() async throws {
        let (slow, quick) = (Watcher(), Watcher())
        try await run { engine in
            let cell = engine.hold(try job(1)).progress
            _ = engine.addWatch(WatchScope(.all, interval: 1), own, slow)
            _ = engine.addWatch(WatchScope(.all), own, quick)
            for bytes in 1...6 as ClosedRange<Int64> {
                cell.report(Progress(completed: bytes, total: 10))
                if bytes.isMultiple(of: 2) { engine.report(250) }
            }
            engine.report(1000)
            #expect(quick.coalesced == [[1], [1], [1]])
            #expect(slow.coalesced == [[5]])
        }
    }

    @Test func watcher_isTold_whereAnotherWithALongerInterval_knewOfTheNews() async throws {
        let (slow, quick, late) = (Watcher(), Watcher(), Watcher())
        try await run { engine in
            let cell = engine.hold(try job(1)).progress
            _ = engine.addWatch(WatchScope(.all, interval: 3600), own, slow)
            cell.report(Progress(completed: 1, total: 10))
            engine.progressed()
            let watch = engine.addWatch(WatchScope(.all), own, quick)
            cell.report(Progress(completed: 2, total: 10))
            engine.report(250)
            #expect(quick.take() == [[1]] && slow.take().isEmpty)
            engine.unwatch(watch)
            cell.report(Progress(completed: 3, total: 10))
            engine.report(250)
            _ = engine.addWatch(WatchScope(.jobs([1])), own, late)
            cell.report(Progress(completed: 4, total: 10))
            engine.report(250)
            #expect(late.take() == [[1]] && quick.take().isEmpty)
            engine.report(3_600_000)
            #expect(slow.take() == [[1]])
        }
    }

    @Test func watcherOfAList_isTold_whereItsChildrenProgress() async throws {
        let (before, after) = (Watcher(), Watcher())
        try await run { engine in
            _ = engine.hold(try job(1))
            _ = engine.hold(try job(2, parent: 1))
            _ = engine.addWatch(WatchScope(.jobs([1])), own, before)
            let cells = try (3...5).map { engine.hold(try job($0, parent: 2)).progress }
            _ = engine.addWatch(WatchScope(.all), own, after)
            for bytes in 1...2 as ClosedRange<Int64> {
                for cell in cells { cell.report(Progress(completed: bytes, total: 10)) }
                engine.report(250)
                #expect(before.take() == [[1]] && after.take() == [[1]])
                engine.report(250)
                #expect(before.take().isEmpty && after.take().isEmpty, "once each")
            }
        }
    }

    @Test func job_tellsNobody_onceNobodyWatches() async throws {
        let watcher = Watcher()
        try await run { engine in
            let cell = engine.hold(try job(1)).progress
            let watch = engine.addWatch(WatchScope(.all), own, watcher)
            engine.unwatch(watch)
            cell.report(Progress(completed: 1, total: 10))
            engine.progressed()
            cell.report(Progress(completed: 2, total: 10))
            #expect(engine.freshJobs.take().isEmpty)
            engine.report(250)
            #expect(watcher.take().isEmpty)
        }
    }
}
