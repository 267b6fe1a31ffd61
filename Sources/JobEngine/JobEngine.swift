package import DataSources
import DeferredKit
import Dispatch
package import JobModel
package import JobStore
package import Logging

/// Carries jobs out: admits them, gives them places, runs their steps, stores what became of them, and tells those who
/// watch or wait.
///
/// What a job does next is decided by the job itself (``Job/handle(_:at:)``); the engine carries it out.
package actor JobEngine {
    package nonisolated let settings: EngineSettings
    package nonisolated let admission: Admission
    nonisolated let executor = EngineExecutor()
    /// Where files of removed jobs are removed.
    nonisolated let bodyQueue = DispatchQueue(label: "deferd.bodies", qos: .utility)
    nonisolated let store: any CallableJobStore
    nonisolated let library: SourceLibrary
    nonisolated let clock: EngineClock
    nonisolated let logger: Logger

    package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// Jobs in memory: those that run and those whose end is being stored.
    var active: [JobID: ActiveJob] = [:]
    var queues: [String: ReadyQueue] = [:]
    var workQueues: [String: WorkQueue] = [:]
    var hosts: HostBoard
    var counters = JobCounters()
    /// By owner; there are as many as users ever submitted since the start.
    var totals: [UInt32: EngineTotals] = [:]
    /// Submissions that are being stored, so that limits count them.
    var coming: (jobs: Int, byUser: [UInt32: Int]) = (0, [:])
    /// New queues that are being stored.
    var comingQueues: Set<String> = []
    var watches = JobWatches()
    var waits = JobWaits()
    var wallAlarms: Alarms?
    var alarms: Alarms?
    /// Jobs with news for watchers of an interval in milliseconds.
    var fresh: [Int: Set<JobID>] = [:]
    /// Jobs that made progress since this was last looked at.
    let freshJobs = FreshJobs()
    var fence = ReadFence()
    var phase = Phase.starting
    /// Why the store last failed to write, while it does.
    var storageFailure: String?
    let startedAt: Timestamp
    var statusReport: (@Sendable (Statistics) -> Void)?

    enum Phase {
        case starting
        case serving
        case stopping
    }

    package init(
        settings: EngineSettings, store: any CallableJobStore, library: SourceLibrary, clock: EngineClock = .system,
        logger: Logger
    ) {
        self.settings = settings
        self.store = store
        self.library = library
        self.clock = clock
        self.logger = logger
        admission = Admission(library: library, limits: settings.limits)
        hosts = HostBoard(limit: settings.perHost, lists: settings.openLists, timers: settings.openTimers)
        startedAt = clock.now()
    }

    /// Takes up where the last daemon ended. Requests may come once this returns.
    package func start() async throws(StoreError) {
        wallAlarms = Alarms(.wall, on: executor.queue) { [weak self] in self?.enter { $0.ring(wall: true) } }
        alarms = Alarms(.monotonic, on: executor.queue) { [weak self] in self?.enter { $0.ring(wall: false) } }
        counters.load(try await store.counts())
        let stored = try await store.queues()
        for (name, concurrency) in settings.queues {
            open(QueueSettings(name: name, concurrency: concurrency))
        }
        for queue in stored { open(queue) }
        // Jobs of a queue that the configuration no longer has run all the same.
        for name in counters.queues where queues[name] == nil {
            logger.warning(
                "A queue with jobs is not configured; it is opened with 16 places.", metadata: ["queue": "\(name)"])
            open(QueueSettings(name: name, concurrency: 16))
        }
        let interrupted = try await store.interrupted()
        phase = .serving
        for job in interrupted { resume(job) }
        setTimes(try await store.nextTimes())
        purge()
        removeForgottenBodies()
        pumpAll()
    }

    func open(_ queue: QueueSettings) {
        let waiting = counters.totals(queue: queue.name)[.queued, default: 0]
        queues[queue.name] = ReadyQueue(settings: queue, storeIsEmpty: waiting == 0)
        workQueues[queue.name] = WorkQueue(concurrency: queue.concurrency)
    }

    /// Takes up a job that was running when the last daemon ended.
    private func resume(_ job: Job) {
        let entry = hold(job)
        do {
            switch try handle(entry, .restart) {
            case .enqueue where entry.job.step?.type?.hasChildren == true && entry.job.children > 0:
                // Its children wait for it, so it waits for nobody.
                _ = try handle(entry, .start)
                runStep(entry)
            case .enqueue where entry.job.step?.type == .timer:
                // It waits for its time only.
                _ = try handle(entry, .start)
                runStep(entry)
            case .enqueue:
                park(entry, host: nextHost(of: entry))
            default: runStep(entry)
            }
        } catch {
            logger.error("A stored job is in no state to go on.", metadata: ["job": "\(job.id)"])
            release(job.id)
        }
    }

    /// Ends without losing anything: transfers stop where they are, what was answered is stored.
    package func stop() async {
        phase = .stopping
        for entry in active.values { entry.run += 1 }
        wallAlarms = nil
        alarms = nil
        await library.shutdown()
        await store.close()
    }

    /// Calls `report` with the state of things now and, at most once a second, when that changed.
    package func observeStatus(_ report: @escaping @Sendable (Statistics) -> Void) {
        statusReport = report
        reportStatus()
    }

    func reportStatus() {
        statusReport?(statistics(for: Caller(uid: 0, isAdmin: true)))
    }

    /// Passes through the engine and the store; false where the store did not come back.
    package func probe() async -> Bool {
        guard phase == .serving else { return phase == .starting }
        return await withCheckedContinuation { continuation in
            store.probe { result in
                // A full disk is no reason to be killed; a store that hangs is.
                self.enter { $0.storageAnswered(result) }
                continuation.resume(returning: true)
            }
        }
    }

    // MARK: - Being on the engine

    /// Runs `body` on the engine, after what was handed to it before.
    nonisolated func enter(_ body: @escaping @Sendable (isolated JobEngine) -> Void) {
        executor.submit { self.assumeIsolated { body($0) } }
    }

    /// Runs `body` on the engine, at once on this thread where the engine has nothing else to do, and then at most
    /// `further` pieces of what comes of it.
    nonisolated func enterNow(further: Int = 0, _ body: @escaping @Sendable (isolated JobEngine) -> Void) {
        executor.runNow({ self.assumeIsolated { body($0) } }, further: further)
    }

    /// Runs `body` on the engine's queue, after what the engine has to do now.
    package nonisolated func afterwards(_ body: @escaping @Sendable () -> Void) {
        executor.submit(body)
    }

    /// Takes a job into memory.
    func hold(_ job: Job) -> ActiveJob {
        let id = job.id
        let cell = ProgressCell { [weak self, freshJobs] in
            if freshJobs.add(id) { self?.enter { $0.progressed() } }
        }
        let entry = ActiveJob(job, progress: cell)
        if job.children > 0 { watches.familyCame() }
        cell.setWatched(watches.needProgress(of: job, parents: parents(of: job)))
        active[id] = entry
        if let parent = job.parent { active[parent.job]?.children.insert(id) }
        return entry
    }

    /// Lets a job go that is stored as it is now.
    func release(_ id: JobID) {
        if let parent = active.removeValue(forKey: id)?.job.parent { active[parent.job]?.children.remove(id) }
        fence.jobLeft(id)
    }

    /// Whether a job that `read` gave is neither in memory nor was there since.
    func isCurrent(_ id: JobID, in read: ReadFence.Read) -> Bool { active[id] == nil && !fence.isOld(id, in: read) }

    /// Lets the job decide, and keeps the counts.
    func handle(_ entry: ActiveJob, _ event: Job.Event) throws(Job.InvalidTransition) -> Job.Action {
        let old = entry.job.state
        let action = try entry.job.handle(event, at: clock.now())
        counters.move(entry.job, from: old)
        statusChanged()
        return action
    }

    func statusChanged() {
        if statusReport != nil { alarms?.setEarlier(.status, in: 1) }
    }

    /// The jobs above `job` that are in memory, from the nearest.
    func parents(of job: Job) -> [Job] {
        var parents: [Job] = []
        var next = job.parent?.job
        while let id = next, let entry = active[id] {
            parents.append(entry.job)
            next = entry.job.parent?.job
        }
        return parents
    }
}

/// What happened since the daemon started.
package struct EngineTotals: Sendable {
    package var submitted = 0
    package var succeeded = 0
    package var failed = 0
    package var cancelled = 0
    package var retried = 0
    package var bytesReceived: Int64 = 0

    static func + (left: EngineTotals, right: EngineTotals) -> EngineTotals {
        var sum = left
        sum.submitted += right.submitted
        sum.succeeded += right.succeeded
        sum.failed += right.failed
        sum.cancelled += right.cancelled
        sum.retried += right.retried
        sum.bytesReceived = sum.bytesReceived.saturatingAdding(right.bytesReceived)
        return sum
    }
}
