import JobModel

/// The core's tasks that no input requests.
struct Agenda {
    /// The times at which the first rows become due, or earlier ones.
    var due = DueTimes()
    /// Whether stored work may be left over.
    var hasWork = false
    /// The owner whose work was served last.
    var lastWorker: UInt32?
    /// Whether the last tick has left rows, schedules or expired jobs to the next.
    var mustTickAgain = false
    /// Whether there may be more finished jobs than retention or a quota allows.
    var hasExcess = false
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

    var hasMore: Bool { hasWork || mustTickAgain || hasExcess || hasMoreReady }

    mutating func note(_ row: JobRow) {
        if let time = row.due { due.steady = min(due.steady ?? time, time) }
        if let time = row.deadline { due.steady = min(due.steady ?? time, time) }
        if row.state == .scheduled, row.due == nil, let time = row.notBefore { note(time) }
    }

    mutating func note(_ time: Timestamp) { due.wall = min(due.wall ?? time, time) }

    /// Returns whether a row may be due.
    func isDue(at now: CoreMoment) -> Bool {
        (due.steady.map { $0 <= now.steady } ?? false) || (due.wall.map { $0 <= now.wall } ?? false)
    }
}
