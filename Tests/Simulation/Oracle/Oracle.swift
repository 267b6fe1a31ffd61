import InMemoryStore
import JobCore
import JobModel

/// Knows what must hold, and sees everything that the core is told and says, and everything that becomes durable.
///
/// It shares no code with the core: chains are worked out by ``Chain``, shares by ``Shares``, counts by ``Counts``.
final class Oracle {
    var settings: CoreSettings
    var jobs: [JobID: KnownJob] = [:]
    /// Jobs that are not over, by id.
    var unfinished: Set<JobID> = []
    /// Of these, those that wait for a time or have a deadline.
    var timed: Set<JobID> = []
    var lastJob: JobID = 0
    var counts = Counts()
    var shares = Shares()
    var requests: [RequestID: OpenRequest] = [:]
    /// The request that the last answer was for.
    var lastAnswered: OpenRequest?
    var subscriptions: [SubscriptionID: KnownSubscription] = [:]
    var queues: [String: QueueSettings] = [:]
    /// Queues whose change is not answered yet.
    var changingQueues: [String: Int] = [:]
    var runs: [RunID: KnownRun] = [:]
    /// Jobs that writes under way are about, by write.
    var pendingWrites: [WriteID: StoreWrite] = [:]
    var isStarted = false
    var startedAt: Int64 = 0
    /// Elapsed time of the last change of the settings of hosts.
    var hostLimit: Int
    /// Until when a host asked to be left alone, in elapsed nanoseconds.
    var backedOff: [String: Int64] = [:]
    var checked = Checked()
    /// The highest time of day since the daemon started.
    var schedules: [ScheduleKey: KnownSchedule] = [:]
    /// Those that were there at any time.
    var storedSchedules: Set<ScheduleKey> = []
    /// Requests that change schedules and have no answer.
    var changingSchedules = 0
    var latestWall = Timestamp(milliseconds: .min)

    /// How often each of the costlier checks had something to look at: one that never has proves nothing.
    struct Checked {
        var starts = 0
        var backOffs = 0
        var fairStarts = 0
        var fairWindows = 0
        var idleSlots = 0
        var counts = 0
        var listOutcomes = 0
        var pages = 0
        var pauses = 0
        var ends = 0
        var memory = 0
        var scheduled = 0
        var schedules = 0
    }

    struct OpenRequest {
        let request: CoreRequest
        let caller: Caller
        let user: Int?
        let askedAt: Int64
        /// The jobs named, as they were.
        var existed: Bool
        var isAbandoned = false
        /// Writes and removals so far, to see whether a page can be compared.
        let version: Int
    }

    struct KnownRun {
        let job: KnownJob
        let link: Int
        let attempt: Int
        let key: Shares.Key
        /// As the host's limit counts it.
        let connections: Int
        let isProgram: Bool
        /// It was told to end, and takes its time.
        var isEnding = false
    }

    /// Changes with every durable insertion and removal.
    var version = 0

    init(scenario: Scenario) {
        settings = scenario.settings
        hostLimit = scenario.settings.perHost
        for queue in settings.queues { queues[queue.name] = queue }
    }

    // MARK: - Inputs

    func admitted(_ json: JSON, _ caller: Caller, _ world: World) -> NewJob? {
        let admission = Admission(policy: Scenario.policy, limits: world.scenario.settings.limits)
        guard let admitted = try? admission.spec(json, from: caller) else { return nil }
        return NewJob(admitted)
    }

    func willHandle(_ input: CoreInput, at now: CoreTime, _ world: World) {
        latestWall = max(latestWall, now.wall)
        switch input {
        case .ended(let run, let outcome, _, _, let random):
            batch.isEnd = true
            sourceEnded(run, outcome, random, at: now, world)
        case .refused(let run, let error):
            if let known = runs[run] { backsOff(known, error, at: now) }
        case .rows: batch.isRows = true
        case .turn: batch.isLongWork = true
        default: break
        }
    }

    func didHandle(at now: CoreTime, _ world: World) {
        checkShares(at: now, world)
        checkMemory(world)
        if !removed.isEmpty, world.store.isQuiet { removed = [:] }
    }

    func configures(_ settings: CoreSettings) {
        self.settings = settings
        hostLimit = max(hostLimit, settings.perHost)
    }

    func clockSet(_ wall: Timestamp) { latestWall = max(latestWall, wall) }

    // MARK: - Lives

    func starting(_ world: World) {
        isStarted = false
        latestWall = world.clock.wall
        hostLimit = settings.perHost
        queues = [:]
        for queue in settings.queues { queues[queue.name] = queue }
        if let marked = world.store.tables.marked.first(where: { jobs[$0]?.isOver ?? true }) {
            world.violate(10, "job \(marked) is marked as at work when the daemon starts, and is over")
        }
    }

    /// The daemon is gone; `marks` are those that the next one finds.
    func crashed(_ world: World) {
        let marked: Set<JobID>
        if case .recovery(let state) = world.store.tables.read(.recovery) {
            marked = Set(state.crashed.map(\.id))
        } else {
            marked = []
        }
        for id in unfinished {
            guard let job = jobs[id] else { continue }
            job.crashIsDue = marked.contains(id)
        }
        forgetLife()
    }

    func stopped(_ world: World) {
        for (id, request) in requests where !request.isAbandoned {
            world.violate(7, "request \(id) (\(request.request)) got no answer before the daemon ended")
            break
        }
        for id in unfinished { jobs[id]?.crashIsDue = false }
        forgetLife()
    }

    private func forgetLife() {
        isStarted = false
        for id in unfinished {
            guard let job = jobs[id] else { continue }
            job.run = nil
            job.ended = nil
            if job.ready != nil { unready(job) }
            // What was asked and is not stored may be forgotten now.
            job.cancelAsked = job.isCancelled
        }
        for job in jobs.values {
            job.retries.forget()
            job.removeAsked = false
        }
        requests = [:]
        changingSchedules = 0
        subscriptions = [:]
        runs = [:]
        pendingWrites = [:]
        changingQueues = [:]
        backedOff = [:]
        shares = Shares()
        batch = Batch()
        abandonedRuns = []
        removed = [:]
        removedBy = [:]
        newlyStored = [:]
    }

    func count(into figures: inout Figures) {
        figures.jobsByEnd = ends
        figures.add(checked)
    }

    // MARK: - Effects

    func effect(_ effect: CoreEffect, at now: CoreTime, _ world: World) {
        switch effect {
        case .write(let id, let write):
            pendingWrites[id] = write
            if case .save = write { batch.saves += 1 }
        case .start(let run): starts(run, at: now, world)
        case .cancel(let run, _): cancels(run, world)
        case .answer(let id, let answer): answers(id, answer, at: now, world)
        case .notify(let subscriptions, let change): notifies(subscriptions, change, world)
        case .progress(let subscriptions, let rows): reports(subscriptions, rows, at: now, world)
        case .started(.success): started(world)
        case .log(let log):
            if log.level == .defect { world.violate(0, "the core reports a defect: \(log.message)") }
        default: break
        }
    }

    private func started(_ world: World) {
        isStarted = true
        startedAt = world.clock.elapsed
        if case .recovery(let state) = world.store.tables.read(.recovery) {
            for queue in state.queues { queues[queue.name] = queue }
        }
        for id in unfinished.sorted() {
            if let job = jobs[id] { refreshReady(job) }
        }
    }

    /// The core was told that a write is durable.
    func answered(_ id: WriteID, _ world: World) {
        guard let write = pendingWrites.removeValue(forKey: id) else { return }
        switch write {
        case .save(let rows): for row in rows { jobs[row.id].map(refreshReady) }
        default: break
        }
        if let gone = removedBy.removeValue(forKey: id),
            let run = runs.values.first(where: { gone.contains($0.job.id) && !$0.isEnding })
        {
            world.violate(2, "the source of job \(run.job.id) goes on, which was removed")
        }
        for id in newlyStored[id] ?? [] { jobs[id].map(refreshReady) }
        newlyStored[id] = nil
    }

    var batch = Batch()
    /// Jobs that ended so far, by how.
    var ends: [JobState: Int] = [:]
    /// Jobs that were removed, while the core may not know it yet.
    var removed: [JobID: KnownJob] = [:]
    /// The same by the write, until the core is told.
    var removedBy: [WriteID: Set<JobID>] = [:]
    /// Runs whose job was removed.
    var abandonedRuns: Set<RunID> = []

    /// Jobs that a write made, until the core knows.
    var newlyStored: [WriteID: [JobID]] = [:]
}
