import DequeModule
import JobModel

/// Decides everything about jobs: inputs and the time go in, effects come out. It does no I/O, reads no clock, draws no
/// random number and starts no thread, so the same inputs give the same effects, always.
///
/// How it hangs together: an input goes to one of the extensions, which asks the parts and adds effects. Each part owns its
/// state and is tested alone.
///
/// | part | owns |
/// |---|---|
/// | ``JobTable`` | the jobs in memory, and which rows of the store are out of date |
/// | ``RestingJobs`` | jobs that wait in the middle of their chains, in the store only |
/// | ``Scheduler`` | queues, slots, windows of ready jobs, hosts |
/// | ``ListCoordinator`` | open lists, joins, gates |
/// | ``TimerQueue`` | timers, one queue for each clock |
/// | ``Subscriptions``, ``Waits`` | who watches and who waits |
/// | ``JobCounters`` | jobs and bytes by owner, queue and state |
/// | ``PendingJobs``, ``PendingSubmissions`` | what is on its way to the store, or waits for its owner's turn |
/// | ``PendingFinds`` | who looks for single jobs |
/// | ``Schedules``, ``AdvancingSchedules`` | schedules, when each is due next, and which are at it |
/// | ``RetentionClock`` | the time by which finished jobs grow old |
/// | ``JobLogBudget`` | how much of jobs may still go into the log |
///
/// A job's way: submitted (`+Requests`) -> stored -> its window -> a turn (`+Scheduling`) -> its step (`+Steps`, lists in
/// `+Lists` and `+ListOutcomes`) -> an outcome -> stored (`+Outcomes`) -> the next link, a retry, or its end. Times in `+Times`, old jobs in `+Retention`, jobs that wait in the
/// middle of their chains in `+Resting`, schedules and the jobs that they submit in `+Schedules`, subscribers and waits in
/// `+Watching` and `+Ancestors`, many jobs that are asked for at once in `+Finding`, what a stop or a retry changes in
/// `+Changes`, queues and settings in `+Queues`, a start and a stop of the daemon in `+Recovery`.
///
/// It is an object that one thread at a time may use.
package final class JobCore {
    enum Phase {
        case starting
        case serving
        case stopping
    }

    typealias WriteContinuation = (Result<StoreWritten, StoreError>) -> Void
    typealias ReadContinuation = (Result<StoreRows, StoreError>) -> Void
    typealias CheckContinuation = (Result<NewJob, CoreError>) -> Void

    var settings: CoreSettings
    /// How specs are checked that come from now on.
    var admission: Admission
    /// The time of the present input.
    var now: CoreTime
    var startedAt: CoreTime
    var phase = Phase.starting
    /// Jobs that are being stored.
    var pendingSaves = PendingJobs()
    /// Jobs that wait for their owners' turns.
    var pendingTurns = PendingJobs()
    /// Who is connected, and may be kept waiting by what others have stored.
    var users = ConnectedUsers.none
    /// Why the store last failed to write, while it does.
    var storageFailure: String?
    /// Why no new jobs are stored although that works: the disk is nearly full.
    var shortage: String?

    var table = JobTable()
    var resting = RestingJobs()
    let scheduler: Scheduler
    var lists = ListCoordinator()
    var timers = TimerQueue()
    var wallTimers = TimerQueue()
    var subscriptions = Subscriptions()
    var waits = Waits()
    var counters = JobCounters()
    var retentionClock: RetentionClock
    var jobLogBudget = JobLogBudget()
    var schedules = Schedules()
    /// Schedules whose next job is being read and stored.
    var advancing = AdvancingSchedules()
    /// When this daemon took over: times of schedules up to this one passed while none ran.
    var recoveredAt = Timestamp(milliseconds: 0)
    /// Milliseconds that the wall clock was ahead of the monotonic one with the last input.
    var wallAhead: Int64?
    /// By owner; there are as many as users ever submitted since the start.
    var totals: [UInt32: CoreTotals] = [:]
    /// Submissions that are being stored, so that limits count them.
    var submitting = PendingSubmissions()
    /// Reads of single jobs, and of schedules, that callers ask for.
    var finds = PendingFinds()
    /// Subscriptions and waits that begin once what they ask for was read or stored, unless they are given up before.
    var beginning: Set<SubscriptionID> = []
    var beginningWaits: Set<RequestID> = []
    /// Sources that are at work.
    var runs: [RunID: JobID] = [:]
    /// Slots of sources that were told to end as their jobs were removed, until they have.
    var abandoned: [RunID: Scheduler.Slot] = [:]
    /// Queues of which a change is being stored, with the changes that wait for it.
    var queueChanges: [String: [() -> Void]] = [:]
    /// Queues that the configuration makes.
    var configuredQueues: Set<String> = []
    /// Queues that the store has, as ``CoreRequest/setQueue(_:_:)`` changed them: the configuration says nothing about these.
    var storedQueues: Set<String> = []
    /// Jobs whose source was at work when a daemon was killed and that wait for their turn; no more than there are
    /// slots.
    var suspects: [JobID: Job] = [:]
    /// Jobs whose removal is being stored.
    var removing: Set<JobID> = []
    /// Lists whose children are being made, and what is left of them to make.
    var making: [JobID: ChildMaker] = [:]
    /// Jobs whose turn it was but which could not be read; as many as there are slots, at most.
    var unread: [Scheduler.Turn] = []
    /// Resting jobs whose time has come are being read.
    var isWaking = false
    /// How many of them are read together.
    var mostWoken = JobCore.mostWoken
    /// The jobs that are stored as running and were not resumed yet; nil once the daemon has taken over.
    var unresumed: Recovery?
    /// Stored jobs to be cancelled, and whether the first of them are being read.
    var toStop: Deque<JobID> = []
    var isReadingStops = false
    /// When the next of them are read, though much is on its way to the store.
    var nextStops: Int64 = 0
    /// Jobs to be cancelled which could not be read.
    var stopAgain: [JobID] = []
    /// Lists in memory whose children could not be read, with their steps.
    var unreadLists: [(job: JobID, step: Int)] = []
    var mustCancelOrphans = false
    /// Lists whose children are to be cancelled and could not be read.
    var stopChildrenAgain: [(list: JobID, link: Int)] = []
    /// Jobs that made progress, by the interval (in milliseconds) at which subscribers want to know.
    var dirty: [Int: Set<JobID>] = [:]
    /// Notifications that wait until the jobs above them are read.
    var pendingNotifications: [JobID: PendingNotifications] = [:]
    /// Jobs that are being read for these, and what is known below each.
    var ancestorReads: [JobID: [(job: JobID, found: [Ancestor])]] = [:]
    /// Jobs whose ancestors could not be read.
    var unreadAncestors: [JobID] = []
    /// When subscribers of an interval were last told of progress.
    var reportedAt: [Int: Int64] = [:]
    /// Changes with every change of what ``CoreStatistics`` says.
    package internal(set) var statusVersion = 0

    private var effects: [CoreEffect] = []
    private var writes: [WriteID: WriteContinuation] = [:]
    private var reads: [ReadID: ReadContinuation] = [:]
    private var cleanUps: [CleanUpID: () -> Void] = [:]
    private var checks: [CheckID: CheckContinuation] = [:]
    private var lastWrite: WriteID = 0
    private var lastRun: RunID = 0
    private var lastCleanUp: CleanUpID = 0
    private var lastCheck: CheckID = 0
    private var isYielding = false
    /// Owners whose turn came while as much was being stored as may be, in the order of their turns.
    private var turnsAfterSaves: Deque<UInt32> = []
    /// What takes long, by owner, in the order of their turns; what is at work is the first of its owner's.
    private var longWork: [UInt32: Deque<() -> Void>] = [:]

    package init(settings: CoreSettings, admission: Admission) {
        self.settings = settings
        self.admission = admission
        now = CoreTime(wall: Timestamp(milliseconds: 0), monotonic: 0)
        startedAt = now
        retentionClock = RetentionClock(at: now, lastEnd: nil)
        scheduler = Scheduler(perHost: settings.perHost, openLists: settings.openLists)
    }

    /// Handles an input and gives what is to be done about it, in order.
    package func handle(_ input: CoreInput, at time: CoreTime) -> [CoreEffect] {
        now = time
        noticeClock()
        switch input {
        case .start: start()
        case .request(let id, let request, let caller): handle(request, id, caller)
        case .abandon(let id): abandon(id)
        case .unsubscribe(let id):
            beginning.remove(id)
            subscriptions.remove(id)
        case .written(let id, let result):
            // Whatever was to be written: nothing else will be either.
            if case .failure(let error) = result, error.code == .write { storageFailed(error) }
            writes.removeValue(forKey: id)?(result)
        case .rows(let id, let result):
            if let body = reads.removeValue(forKey: id) {
                body(result)
                table.endRead(id)
            }
        case .progress(let reports): progressed(reports)
        case .ended(let run, let outcome, let size, let report, let random):
            sourceEnded(run, outcome, size: size, report, random: random)
        case .refused(let run, let error): refused(run, error)
        case .cleanedUp(let id): cleanUps.removeValue(forKey: id)?()
        case .checked(let id, let result): checks.removeValue(forKey: id)?(result)
        case .room(let shortage): roomChanged(shortage)
        case .users(let users): usersChanged(users)
        case .time: break
        case .zones(let zones): zonesRead(zones)
        case .resume:
            isYielding = false
        case .turn(let owner): turnCame(of: owner)
        case .stop: stop()
        }
        fireTimers()
        if unresumed == nil { runSchedules() }
        startWhatCan()
        defer { effects = [] }
        return effects
    }

    /// When an input `time` is wanted at the latest.
    package var nextWake: CoreWake {
        // What has come to its time by then has to wait until the daemon has taken over.
        guard unresumed == nil else { return CoreWake(wall: nil, monotonic: nil) }
        let wall = [wallTimers.next, schedules.next].compactMap(\.self).min()
        return CoreWake(wall: wall.map(Timestamp.init(milliseconds:)), monotonic: timers.next)
    }

    /// The shortest time between two inputs `progress` that subscribers want, in milliseconds; nil while nobody does.
    package var progressInterval: Int? { subscriptions.shortestInterval }

    var pendingWrites: Int { writes.count }

    /// Jobs that wait for their owners' turns.
    var waitingForTurns: Int { longWork.values.reduce(0) { $0 + $1.count } }

    /// Those of one owner, of whom nothing new starts while there are more than ``mostWaitingForTurns``.
    package func waitingForTurns(of owner: UInt32) -> Int { longWork[owner]?.count ?? 0 }

    // MARK: - Effects

    func emit(_ effect: CoreEffect) { effects.append(effect) }

    func write(_ write: StoreWrite, _ body: @escaping WriteContinuation) {
        lastWrite += 1
        writes[lastWrite] = body
        emit(.write(lastWrite, write))
    }

    /// `body` asks ``JobTable/present(_:)`` before it believes a row.
    func read(_ read: StoreRead, _ body: @escaping ReadContinuation) {
        let id = table.beginRead()
        reads[id] = body
        emit(.read(id, read))
    }

    func cleanUp(_ body: @escaping () -> Void) -> CleanUpID {
        lastCleanUp += 1
        cleanUps[lastCleanUp] = body
        return lastCleanUp
    }

    func check(_ spec: ScheduledSpec, _ body: @escaping CheckContinuation) {
        lastCheck += 1
        checks[lastCheck] = body
        emit(.check(lastCheck, spec))
    }

    func nextRun() -> RunID {
        lastRun += 1
        return lastRun
    }

    func yield() {
        guard !isYielding else { return }
        isYielding = true
        emit(.yield)
    }

    /// Does what takes several milliseconds for a job about an input of its own, so that nobody but its owner waits for long.
    /// Until then the job is in memory and counts as on its way, so that only so many of an owner's wait for their turn.
    func inTurn(of entry: ActiveJob, _ body: @escaping () -> Void) {
        let owner = entry.job.owner
        let bytes = entry.job.memorySize
        longWork[owner, default: []].append { [unowned self] in
            pendingTurns.remove(bytes, of: owner)
            body()
        }
        pendingTurns.add(bytes, of: owner)
        pauseOrResume(owner)
        if longWork[owner]?.count == 1 { emit(.turn(owner)) }
    }

    /// Something of an owner's was stored, or was not.
    func saveEnded(of owner: UInt32) {
        guard !turnsAfterSaves.isEmpty, !pendingSaves.isFull else { return }
        let ready = turnsAfterSaves.filter { !pendingSaves.isFull(for: $0) }
        turnsAfterSaves.removeAll { !pendingSaves.isFull(for: $0) }
        for owner in ready { emit(.turn(owner)) }
    }

    private func turnCame(of owner: UInt32) {
        // What steps make has to be stored before they make more: each may make as much as a document holds, and each owner may
        // be at one. Stores end by themselves, also those that fail.
        guard !pendingSaves.isFull, !pendingSaves.isFull(for: owner) else {
            turnsAfterSaves.append(owner)
            return
        }
        longWork[owner]?.first?()
        _ = longWork[owner]?.popFirst()
        if longWork[owner]?.isEmpty == false { emit(.turn(owner)) } else { longWork[owner] = nil }
        pauseOrResume(owner)
    }

    func answer(_ id: RequestID, _ answer: CoreAnswer) { emit(.answer(id, answer)) }

    func fail(_ id: RequestID, _ error: CoreError) { answer(id, .failed(error)) }

    func log(
        _ level: CoreLog.Level, _ message: String, job: JobID? = nil, queue: String? = nil, event: CatalogEvent? = nil
    ) {
        emit(.log(CoreLog(level, message, job: job, queue: queue, event: event)))
    }

    /// Logs what happened to a job, where that is wanted and there is room for it in the log.
    func log(_ job: Job, _ event: @autoclosure () -> JobLogEntry.Event) {
        guard settings.jobLogging != .none else { return }
        guard let leftOut = admitToLog() else { return }
        emit(.log(CoreLog(JobLogEntry(event(), of: job, leftOut: leftOut))))
    }

    /// The same for a job that was stored under `id`.
    func logAccepted(_ id: JobID, _ job: Job) {
        guard settings.jobLogging != .none, let leftOut = admitToLog() else { return }
        emit(.log(CoreLog(JobLogEntry(.accepted, of: job.numbered(id), leftOut: leftOut))))
    }

    /// The same for children that a list made, which are in memory in part only.
    func logAccepted(_ made: ChildMaker, _ ids: [JobID], of parent: Job) {
        guard settings.jobLogging != .none else { return }
        for (child, id) in zip(made.children, ids) {
            guard let leftOut = admitToLog() else { continue }
            let entry = JobLogEntry(
                accepted: id, of: parent, queue: child.queue, host: child.host, leftOut: leftOut)
            emit(.log(CoreLog(entry)))
        }
    }

    /// How many entries on jobs were left out since the last one; nil where this one is to be.
    private func admitToLog() -> Int? {
        settings.jobLogging == .all ? 0 : jobLogBudget.admit(at: now.monotonic)
    }

    /// Reports a broken invariant, where `condition` is false. The daemon goes on: what it concerns ends by itself.
    func expect(_ condition: Bool, _ message: @autoclosure () -> String, job: JobID? = nil) {
        if !condition { log(.defect, message(), job: job, event: .defect) }
    }

    // MARK: - What every extension needs

    /// Takes a job into memory, as it is stored.
    func activate(_ job: Job) -> ActiveJob {
        expect(table[job.id] == nil, "Job \(job.id) came into memory twice.", job: job.id)
        let entry = ActiveJob(job)
        if job.children > 0 { subscriptions.parentCame() }
        suspects[job.id] = nil
        if let rest = resting.remove(job.id) { takeOver(rest, entry) }
        table.insert(entry)
        return entry
    }

    /// Removes a job from memory; it is stored as it is now.
    func deactivate(_ entry: ActiveJob) {
        expect(
            entry.slot == nil && entry.permit == nil && entry.run == nil, "Job \(entry.job.id) left with what it held.",
            job: entry.job.id)
        if entry.job.crashes > 0, !entry.job.state.isTerminal { suspects[entry.job.id] = entry.job }
        table.remove(entry.job.id)
    }

    /// Sends an event to the job's state machine, and updates the counters.
    func transition(_ entry: ActiveJob, _ event: Job.Event) throws(Job.InvalidTransition) -> Job.Action {
        let old = entry.job.state
        let action = try entry.job.handle(event, at: now.wall)
        entry.changes += 1
        counters.move(entry.job, from: old)
        statusVersion += 1
        return action
    }

    func count(_ owner: UInt32, _ change: (inout CoreTotals) -> Void) {
        change(&totals[owner, default: CoreTotals()])
    }

    func setTimer(_ timer: CoreTimer, in seconds: Double) { timers.set(timer, at: now.monotonic(after: seconds)) }

    /// Sets a timer by the time of day.
    func setWallTimer(_ timer: CoreTimer, at time: Timestamp) { wallTimers.setEarlier(timer, at: time.milliseconds) }

    /// A job that `caller` may see, as it is now.
    func find(_ id: JobID, for caller: Caller, _ body: @escaping (Result<Job, CoreError>) -> Void) {
        func give(_ job: Job?) {
            guard let job, caller.sees(job) else { return body(.failure(.noJob(id))) }
            body(.success(job))
        }
        switch table.known(id) {
        case .active(let entry) where caller.sees(entry.job): return give(entry.job)
        case .left(let job) where caller.sees(job): return give(job)
        // Another's job goes the way of one that does not exist, so that nothing tells them apart.
        default: break
        }
        guard phase != .stopping else { return body(.failure(.stopping)) }
        guard finds.begin(for: caller.uid, else: { [unowned self] in find(id, for: caller, body) }) else { return }
        read(.jobs([id], owner: caller.owner)) { [unowned self] result in
            if case .success(.jobs(let rows)) = result {
                give(rows.first.flatMap { table.present($0) })
            } else {
                body(.failure(Self.error(of: result)))
            }
            endFind(for: caller.uid)
        }
    }

    /// What ``PendingFinds/begin(for:else:)`` let a user read was read, and the next may be.
    func endFind(for user: UInt32) {
        finds.end(for: user)
        while let next = finds.next(for: user) { next() }
    }

    /// A job with the progress that it makes now.
    func snapshot(_ job: Job) -> JobView {
        let entry = table[job.id]
        return JobView(
            entry?.job ?? job, progress: entry.flatMap { progress(of: $0) },
            inlineResult: settings.limits.inlineResult)
    }
}

/// Submissions that are being stored.
struct PendingSubmissions {
    private(set) var all = 0
    private var byOwner: [UInt32: (jobs: Int, bytes: Int64)] = [:]

    func jobs(of owner: UInt32) -> Int { byOwner[owner]?.jobs ?? 0 }
    func bytes(of owner: UInt32) -> Int64 { byOwner[owner]?.bytes ?? 0 }

    /// Counts jobs as on their way, or no longer where negative.
    mutating func add(_ jobs: Int, bytes: Int64, of owner: UInt32) {
        all += jobs
        let own = byOwner[owner] ?? (0, 0)
        byOwner[owner] = own.jobs + jobs > 0 ? (own.jobs + jobs, own.bytes.saturatingAdding(bytes)) : nil
    }
}
