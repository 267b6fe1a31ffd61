import JobModel

/// A job in memory: it runs, waits in the middle of its chain, or is being stored.
final class ActiveJob {
    var job: Job
    /// Changes with every step, so that events of an earlier step are told apart from those of the present one.
    var step = 0
    /// The source that is at work.
    var run: RunID?
    /// That source takes its time to end when it is told to.
    var runEndsLater = false
    /// The slot of its queue.
    var slot: Scheduler.Slot?
    /// What lets it run under its concurrency key.
    var permit: HostLimits.Permit?
    /// What lets its run have more than one connection.
    var sparePermits: [HostLimits.Permit] = []
    /// It is a list that was open when the daemon was started, and is to be opened again.
    var isResumed = false
    /// It waits in its queue's window, in the middle of its chain.
    var isParked = false
    /// The jobs above it as they were read, where these are finished and not in memory.
    var lineage: [Ancestor]?
    /// Its children that are in memory.
    var children: Set<JobID> = []
    /// Its source is a timer that would last longer than its attempt may take.
    var isTimerTooLong = false
    var progress: Progress?
    /// How often its progress was reported since the step began.
    var updates = 0
    /// The value of `updates` when progress was last reported at an interval (in milliseconds).
    private var reported: [(interval: Int, updates: Int)] = []
    private var rate = RateMeter()
    /// When its progress was last computed of that of its children, and whether these have come further since.
    private var childrenReadAt: Int64?
    var hasNewsOfChildren = false
    /// The topics that cover it, and the version of the subscriptions that this is of.
    var coverage: (version: Int, topics: Subscriptions.Coverage) = (-1, Subscriptions.Coverage())
    /// What to do once the present state is stored; nil where it is stored already.
    var unsaved: Job.Action?
    /// Counts its changes of state, and how many of them are stored.
    var changes = 0
    var storedChanges = 0
    var isStored: Bool { changes == storedChanges }
    /// Counts the saves, so that only the end of the latest one counts.
    var saves = 0
    /// Called once the job is stored as it is now.
    var awaitingSave: [(Result<Void, StoreError>) -> Void] = []
    var isRemoved = false
    /// A retry of it is being stored; until that is done the job counts as finished.
    var isBeingRetried = false
    /// Requests that go on once its end or its retry is stored and it has left the memory.
    var postponed: [() -> Void] = []
    /// It still has the mark of the daemon that was killed; set until the crash is counted.
    var hasOldMark = false
    /// What is stored of it: bytes, and in which state.
    var stored: (size: Int64, state: JobState)

    /// `job` is stored as it is.
    init(_ job: Job) {
        self.job = job
        stored = (job.storedSize, job.state)
    }

    // MARK: - Progress

    func resetProgress() {
        progress = nil
        updates = 0
        reported = []
        rate = RateMeter()
        childrenReadAt = nil
        hasNewsOfChildren = false
    }

    func report(_ update: Progress, updates: Int, at now: Int64) {
        var update = update
        update.rate = rate.measure(update.completed, at: now)
        progress = update
        self.updates = updates
    }

    /// Nanoseconds between two looks at all of its children; more often only where it is told.
    private static let childrenInterval: Int64 = 50_000_000

    /// Whether its children are to be looked at again, now that they have come further.
    func childrenCameFurther(at now: Int64) -> Bool {
        hasNewsOfChildren = true
        updates += 1
        return childrenReadAt.map { now - $0 >= Self.childrenInterval } ?? true
    }

    /// What its children have come to in sum.
    func report(ofChildren progress: Progress, at now: Int64) {
        hasNewsOfChildren = false
        childrenReadAt = now
        report(progress, updates: updates, at: now)
    }

    /// The number of intervals that are remembered; a subscriber at yet another gets a count that is too high.
    private static let intervals = 16

    /// How many reports came since the last notification at `interval`; counts from now on again.
    func updatesSinceReport(_ interval: Int) -> Int {
        if let index = reported.firstIndex(where: { $0.interval == interval }) {
            defer { reported[index].updates = updates }
            return updates - reported[index].updates
        }
        if reported.count == Self.intervals { reported.removeFirst() }
        reported.append((interval, updates))
        return updates
    }
}

/// Measures a rate as an exponentially weighted mean.
struct RateMeter {
    /// Nanoseconds between two measurements, at least.
    private static let window: Int64 = 250_000_000

    private var measuredAt: Int64?
    private var measured: Int64 = 0
    private var rate: Double?

    /// The rate in units a second; nil before there were two measurements.
    mutating func measure(_ completed: Int64, at now: Int64) -> Double? {
        guard let before = measuredAt, completed >= measured, now >= before else {
            measuredAt = now
            measured = completed
            rate = nil
            return nil
        }
        guard now - before >= Self.window else { return rate }
        let present = Double(completed - measured) / (Double(now - before) / 1e9)
        rate = rate.map { 0.6 * $0 + 0.4 * present } ?? present
        measuredAt = now
        measured = completed
        return rate
    }
}
