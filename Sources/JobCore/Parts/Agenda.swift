import JobModel

/// What is to be done without an input that asks for it.
struct Agenda {
    /// When rows that wait for a time are due.
    var deadlines = Deadlines()
    /// There may be work left over.
    var hasWork = false
    /// The owner whose work had its turn last.
    var lastWorker: UInt32?
    /// More rows are due than the last look took.
    var hasMoreDue = false
    /// More schedules are to be looked at.
    var hasMoreSchedules = false
    /// There are more finished jobs than are kept.
    var hasExcess = false
    /// There are more finished jobs that have been kept long enough.
    var hasExpired = false
    /// More jobs may start than the last round started.
    var hasMoreReady = false
    /// When the finished job that ended first has been kept long enough, by the time of day.
    var nextExpiry: Timestamp?
    /// Queues that administrators stored.
    var storedQueues: Set<String> = []
    /// The outcomes of jobs that this round inserted, where their specs say them.
    private(set) var immediate: [JobID: Carried] = [:]

    var hasMore: Bool { hasWork || hasMoreDue || hasMoreSchedules || hasExcess || hasExpired || hasMoreReady }

    /// Whether there is something to do at a time.
    func wants(at now: CoreMoment) -> Bool {
        hasMore || deadlines.isDue(at: now) || nextExpiry.map { $0 <= now.wall } ?? false
    }

    mutating func remember(_ outcome: Carried, of job: JobID) { immediate[job] = outcome }
    mutating func endRound() { if !immediate.isEmpty { immediate = [:] } }
}
