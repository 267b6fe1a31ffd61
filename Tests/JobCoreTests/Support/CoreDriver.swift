import JobModel
import Testing

@testable import JobCore

/// A core with a store, sources and a clock that the test turns: carries effects out and remembers them.
///
/// What the core asks of the store is answered at once, unless the test holds it back.
final class CoreDriver {
    var settings: CoreSettings
    private(set) var core: JobCore
    var store = TestStore()
    var now = CoreTime(wall: Timestamp(milliseconds: 1_790_000_000_000), monotonic: 1_000_000_000_000)
    /// What `random` is with the end of each source.
    var random = 0.0
    /// The zones that the machine knows.
    var zones: [String: ZoneRules] = ["Test/One": .utc]

    // MARK: What is held back

    var holdsWrites = false
    var holdsReads = false
    /// Checks of the specs of schedules.
    var holdsChecks = false
    /// Turns of owners for what takes long.
    var holdsTurns = false
    /// Says which reads and writes fail.
    var failsWrite: (StoreWrite) -> Bool = { _ in false }
    var failsRead: (StoreRead) -> Bool = { _ in false }
    /// Says which reads find nothing, as rows that are damaged.
    var missesRead: (StoreRead) -> Bool = { _ in false }
    private(set) var heldWrites: [(id: WriteID, write: StoreWrite)] = []
    /// Durable, but the core was not told.
    private(set) var unanswered: [(id: WriteID, result: Result<StoreWritten, StoreError>)] = []
    /// With what the store held when they were asked.
    private(set) var heldReads: [(id: ReadID, read: StoreRead, result: Result<StoreRows, StoreError>)] = []
    private(set) var heldChecks: [CoreInput] = []
    private(set) var heldTurns: [UInt32] = []
    var holdsCleanUps = false
    private(set) var heldCleanUps: [CleanUpID] = []
    /// Crashes after so many more writes are durable, before the core is told.
    var writesUntilCrash: Int?
    private(set) var hasCrashed = false

    // MARK: What happened

    private(set) var answers: [RequestID: CoreAnswer] = [:]
    private(set) var open: [RunID: SourceRun] = [:]
    private(set) var started: [SourceRun] = []
    private(set) var cancelled: [RunID] = []
    private(set) var told: [(subscribers: [SubscriptionID], change: JobChange)] = []
    private(set) var reported: [(subscribers: [SubscriptionID], rows: [ProgressRow])] = []
    private(set) var reads: [StoreRead] = []
    private(set) var discarded: [(job: JobID, links: ClosedRange<Int>)] = []
    private(set) var removed: [RemovedJob] = []
    private(set) var logs: [CoreLog] = []
    private(set) var hasStarted = false
    private(set) var startFailure: StoreError?
    private var inputs: [CoreInput] = []
    private var isFeeding = false
    private var lastRequest: RequestID = 0

    static let policy = ResourcePolicy(
        checkURL: { (url) throws(JobError) in
            let host = url.split(separator: "/").dropFirst().first.map(String.init) ?? ""
            guard host != "denied" else { throw JobError(.policy, "The host is denied.") }
            return host
        }, checkPath: { (_, _) throws(JobError) in })

    init(starts: Bool = true, _ configure: (inout CoreSettings) -> Void = { _ in }) {
        var settings = CoreSettings()
        settings.ownersShare = 1
        configure(&settings)
        self.settings = settings
        core = JobCore(settings: settings, admission: Admission(policy: Self.policy, limits: settings.limits))
        if starts { start() }
    }

    // MARK: - Life

    func start() { feed(.start) }

    /// The daemon is killed; what is durable stays.
    func crash() {
        forget()
        start()
    }

    /// The daemon ends as it should, and starts again.
    func restart() { stopAndWait(0) }

    /// The daemon ends as it should, and another starts so many seconds later.
    func stopAndWait(_ seconds: Double) {
        feed(.stop)
        holdsWrites = false
        releaseWrites()
        store.clearMarks()
        forget()
        turn(to: now.monotonic + Int64(seconds * 1e9))
        start()
    }

    private func forget() {
        core = JobCore(settings: settings, admission: Admission(policy: Self.policy, limits: settings.limits))
        heldWrites = []
        unanswered = []
        heldReads = []
        heldChecks = []
        heldTurns = []
        heldCleanUps = []
        open = [:]
        inputs = []
        answers = [:]
        hasCrashed = false
        hasStarted = false
    }

    // MARK: - Inputs

    func feed(_ input: CoreInput) {
        inputs.append(input)
        guard !isFeeding else { return }
        isFeeding = true
        defer { isFeeding = false }
        var count = 0
        while !inputs.isEmpty, !hasCrashed {
            count += 1
            guard count < 100_000 else {
                Issue.record("The core goes on and on without time passing.")
                inputs = []
                return
            }
            for effect in core.handle(inputs.removeFirst(), at: now) where !hasCrashed { carryOut(effect) }
        }
    }

    /// Lets time pass, stopping whenever the core wants to know of it.
    func advance(_ seconds: Double) {
        let end = now.monotonic + Int64(seconds * 1e9)
        var count = 0
        while let wake = wakeAt, wake <= end, count < 100_000, !hasCrashed {
            count += 1
            turn(to: max(wake, now.monotonic))
            feed(.time)
        }
        turn(to: end)
        feed(.time)
    }

    /// Sets the time of day.
    func setWall(by seconds: Double) {
        now.wall = now.wall.adding(seconds: seconds)
        feed(.time)
    }

    private func turn(to monotonic: Int64) {
        let passed = (monotonic - now.monotonic + 999_999) / 1_000_000
        now.wall = Timestamp(milliseconds: now.wall.milliseconds + passed)
        now.monotonic += passed * 1_000_000
    }

    private var wakeAt: Int64? {
        let wake = core.nextWake
        let wall = wake.wall.map { now.monotonic + max(0, $0.milliseconds - now.wall.milliseconds) * 1_000_000 }
        return [wall, wake.monotonic].compactMap(\.self).min()
    }

    // MARK: - Effects

    private func carryOut(_ effect: CoreEffect) {
        switch effect {
        case .write(let id, let write):
            heldWrites.append((id, write))
            if !holdsWrites { releaseWrites() }
        case .read(let id, let read):
            reads.append(read)
            let result: Result<StoreRows, StoreError> =
                if failsRead(read) { .failure(StoreError(.read, "The disk cannot be read.")) } else {
                    .success(missesRead(read) ? .jobs([]) : store.read(read))
                }
            if holdsReads { heldReads.append((id, read, result)) } else { inputs.append(.rows(id, result)) }
        case .mark(let job, let isWorking): store.mark(job, isWorking: isWorking)
        case .start(let run):
            #expect(open[run.run] == nil)
            open[run.run] = run
            started.append(run)
        case .cancel(let run, let awaitsEnd):
            if !awaitsEnd { open[run] = nil }
            cancelled.append(run)
        case .discardParts(let id, let job, let links, _):
            discarded.append((job, links))
            if holdsCleanUps { heldCleanUps.append(id) } else { inputs.append(.cleanedUp(id)) }
        case .cleanUp(let id, let jobs):
            removed += jobs
            if holdsCleanUps { heldCleanUps.append(id) } else { inputs.append(.cleanedUp(id)) }
        case .check(let id, let spec):
            let input = CoreInput.checked(id, spec.checked(by: core.admission))
            if holdsChecks { heldChecks.append(input) } else { inputs.append(input) }
        case .answer(let id, let answer):
            #expect(answers[id] == nil, "a request is answered once")
            answers[id] = answer
        case .notify(let subscribers, let change): told.append((subscribers, change))
        case .progress(let subscribers, let rows): reported.append((subscribers, rows))
        case .started(.success): hasStarted = true
        case .started(.failure(let error)): startFailure = error
        case .readZones(let names): inputs.append(.zones(zones.filter { names.contains($0.key) }))
        case .yield: inputs.append(.resume)
        case .turn(let owner): if holdsTurns { heldTurns.append(owner) } else { inputs.append(.turn(owner)) }
        case .log(let log):
            #expect(log.level != .defect, "\(log.message)")
            logs.append(log)
        }
    }

    // MARK: - What was held back

    /// Makes what was written durable; the core is told by ``releaseWrites(_:)``.
    func commitWrites(_ most: Int = .max) {
        var left = most
        while left > 0, !heldWrites.isEmpty {
            left -= 1
            let (id, write) = heldWrites.removeFirst()
            guard !failsWrite(write) else {
                unanswered.append((id, .failure(StoreError(.write, "The disk is full."))))
                continue
            }
            unanswered.append((id, .success(store.write(write))))
            guard let further = writesUntilCrash else { continue }
            writesUntilCrash = further - 1
            if further == 1 {
                writesUntilCrash = nil
                hasCrashed = true
                return
            }
        }
    }

    /// Tells the core of what was written, the first `most` of it.
    func releaseWrites(_ most: Int = .max) {
        commitWrites(most - min(most, unanswered.count))
        var left = most
        while left > 0, !unanswered.isEmpty, !hasCrashed {
            left -= 1
            let (id, result) = unanswered.removeFirst()
            feed(.written(id, result))
        }
    }

    /// Answers the reads that were held back, those that `isMeant` says; `isLate` lets the store look only now.
    func releaseReads(isLate: Bool = false, where isMeant: (StoreRead) -> Bool = { _ in true }) {
        let held = heldReads
        heldReads = []
        var released: [(ReadID, Result<StoreRows, StoreError>)] = []
        for (id, read, result) in held {
            if isMeant(read) {
                released.append((id, isLate ? .success(store.read(read)) : result))
            } else {
                heldReads.append((id, read, result))
            }
        }
        for (id, result) in released { feed(.rows(id, result)) }
    }

    /// Answers one of the reads that were held back, whichever was asked first.
    func releaseRead(at index: Int, isLate: Bool) {
        let (id, read, result) = heldReads.remove(at: index)
        feed(.rows(id, isLate ? .success(store.read(read)) : result))
    }

    func releaseChecks() {
        let held = heldChecks
        heldChecks = []
        for input in held { feed(input) }
    }

    /// Gives each owner that waits for one a turn.
    func releaseTurns() {
        let held = heldTurns
        heldTurns = []
        for owner in held { feed(.turn(owner)) }
    }

    func releaseCleanUps() {
        let held = heldCleanUps
        heldCleanUps = []
        for id in held { feed(.cleanedUp(id)) }
    }

    /// Takes a source from those at work: its end is fed next.
    func finish(_ run: RunID) { open[run] = nil }

    // MARK: - Requests

    @discardableResult
    func ask(_ request: CoreRequest, as caller: Caller = .one) -> RequestID {
        lastRequest += 1
        feed(.request(lastRequest, request, caller))
        return lastRequest
    }

    func answer(to id: RequestID) -> CoreAnswer? { answers[id] }

    /// Forgets what happened so far.
    func forgetEvents() {
        told = []
        reported = []
        started = []
        cancelled = []
        reads = []
        removed = []
        discarded = []
        logs = []
    }
}

extension Caller {
    static let one = Caller(uid: 1, isAdmin: false)
    static let two = Caller(uid: 2, isAdmin: false)
    static let root = Caller(uid: 0, isAdmin: true)
}
