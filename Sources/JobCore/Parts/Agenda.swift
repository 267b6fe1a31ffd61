import JobModel

/// The core's tasks that no input requests.
struct Agenda {
    /// The earliest times at which rows become due.
    var deadlines = Deadlines()
    /// Whether stored work may be left over.
    var hasWork = false
    /// The owner whose work was served last.
    var lastWorker: UInt32?
    /// Whether more rows are due than the last query returned.
    var hasMoreDue = false
    /// Whether more schedules need a check.
    var hasMoreSchedules = false
    /// Whether there may be more finished jobs than retention allows.
    var hasExcess = false
    /// The owners whose finished jobs must make room for what was stored already.
    var overQuota: Set<UInt32> = []
    /// The one of them who was served last.
    private var lastOverQuota: UInt32 = 0
    /// Whether more finished jobs have expired than the last query returned.
    var hasExpired = false
    /// Whether a suspect's run may have ended, so that another can start.
    var hasClearedSuspect = false
    /// Whether more jobs may start than the last round started.
    var hasMoreReady = false
    /// When the oldest finished job expires, by the wall clock.
    var nextExpiry: Timestamp?
    /// What administrators set of queues.
    var storedQueues: [String: QueueOverrides] = [:]
    /// Outcomes, contained in their specs, of jobs inserted in this round.
    var immediate: [JobID: Carried] = [:]

    var hasMore: Bool {
        hasWork || hasMoreDue || hasMoreSchedules || hasExcess || hasExpired || hasMoreReady || !overQuota.isEmpty
    }

    /// Returns the owner whose finished jobs make room next; owners take turns.
    mutating func nextOverQuota() -> UInt32? {
        let next = overQuota.filter { $0 > lastOverQuota }.min() ?? overQuota.min()
        lastOverQuota = next ?? 0
        return next
    }

    /// Returns whether a task is due.
    func wants(at now: CoreMoment) -> Bool {
        hasMore || deadlines.isDue(at: now) || nextExpiry.map { $0 <= now.wall } ?? false
    }
}
