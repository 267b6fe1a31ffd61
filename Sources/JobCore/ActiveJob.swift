import JobModel

/// A job in memory: it runs, waits in the middle of its chain, or what became of it is being stored.
final class ActiveJob {
    var job: Job
    /// Changes with every step, so that what an earlier one still hears of is told from what the present one does.
    var step = 0
    /// The source that is at work.
    var run: RunID?
    /// The slot of its queue.
    var slot: Scheduler.Slot?
    /// What it has under a concurrency key.
    var permit: HostLimits.Permit?
    /// It waits in its queue's window, in the middle of its chain.
    var isParked = false
    /// What was read of the jobs above it, where these are over and not in memory.
    var lineage: [Ancestor]?
    /// Its children that are in memory.
    var children: Set<JobID> = []
    /// Its source is a timer whose attempt takes too long before it ends.
    var isTimerTooLong = false
    var progress: Progress?
    /// How often its progress was reported since the step began.
    var updates = 0
    /// How many reports there were when those of an interval (in milliseconds) were told last.
    private var told: [(interval: Int, updates: Int)] = []
    private var rate = RateMeter()
    /// The topics that cover it, and the version of the subscriptions that this is of.
    var matches: (version: Int, list: [Subscriptions.Match]) = (-1, [])
    /// What could not be stored yet, and what follows once it is.
    var unsaved: Job.Action?
    /// Counts the saves, so that only the end of the latest one counts.
    var saves = 0
    /// Who waits until the job is stored as it is now.
    var awaitingSave: [(Result<Void, StoreError>) -> Void] = []
    var isRemoved = false
    /// A retry of it is being stored: until then it is over, as it was.
    var isBeingRetried = false
    /// Requests that go on once its end or its retry is stored, and it is out of memory.
    var postponed: [() -> Void] = []
    /// It is marked as at work by the daemon that was killed, until its crash is counted.
    var hasOldMark = false
    /// What is stored of it: bytes, and in which state.
    var stored: (size: Int64, state: JobState)

    init(_ job: Job, storedSize: Int64) {
        self.job = job
        stored = (storedSize, job.state)
    }

    // MARK: - Progress

    func resetProgress() {
        progress = nil
        updates = 0
        told = []
        rate = RateMeter()
    }

    func report(_ update: Progress, updates: Int, at now: Int64) {
        var update = update
        update.rate = rate.measure(update.completed, at: now)
        progress = update
        self.updates = updates
    }

    /// The intervals that are remembered; who watches at yet another is told a count that is too high.
    private static let intervals = 16

    /// How many reports came since those of `interval` were told last, which they are now.
    func updatesSinceTold(_ interval: Int) -> Int {
        if let index = told.firstIndex(where: { $0.interval == interval }) {
            defer { told[index].updates = updates }
            return updates - told[index].updates
        }
        if told.count == Self.intervals { told.removeFirst() }
        told.append((interval, updates))
        return updates
    }
}

/// Works a rate out from what was completed when, as a mean that forgets.
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
