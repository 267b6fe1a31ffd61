import JobModel

/// Knowledge of this life of the daemon that no row stores.
package struct Experience {
    var life: Int64
    let startedAt: CoreMoment
    /// The number of the latest run; never reused, even if its round was undone.
    private(set) var lastRun: Int64 = 0
    /// Why requests that need disk space are refused.
    var shortage: String?
    /// Totals by owner since the daemon started.
    private(set) var totals: [UInt32: CoreTotals] = [:]
    /// The versions of jobs that clients were told of, while there is more news.
    var told: [JobID: Int64] = [:]
    var logBudget = JobLogBudget()
    /// Files being removed.
    package internal(set) var cleaning: Set<WorkID> = []

    mutating func nextRun() -> RunID {
        lastRun += 1
        return RunID(life: life, number: lastRun)
    }

    /// Forgets what a round has changed.
    mutating func undo(to earlier: Experience) {
        (shortage, totals, cleaning, told) = (earlier.shortage, earlier.totals, earlier.cleaning, earlier.told)
    }

    mutating func count(_ owner: UInt32, _ change: (inout CoreTotals) -> Void) {
        change(&totals[owner, default: CoreTotals()])
    }

    /// Returns the time of day that decides which finished jobs expire.
    /// A clock that leaps ahead while the daemon runs expires none, because purged jobs do not come back.
    func aging(_ now: CoreMoment) -> Timestamp {
        let elapsed = Double(max(0, now.steady.saturatingSubtracting(startedAt.steady))) / 1000
        return min(now.wall, startedAt.wall.adding(seconds: elapsed + 60))
    }
}

/// Totals since the daemon started.
package struct CoreTotals: Sendable, Hashable {
    package var submitted = 0
    package var succeeded = 0
    package var failed = 0
    package var cancelled = 0
    package var retried = 0

    package init() {}

    package static func + (left: CoreTotals, right: CoreTotals) -> CoreTotals {
        var sum = left
        for total in [\CoreTotals.submitted, \.succeeded, \.failed, \.cancelled, \.retried] {
            sum[keyPath: total] += right[keyPath: total]
        }
        return sum
    }
}
