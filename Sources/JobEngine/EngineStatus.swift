package import JobModel
package import JobCore

/// The state of the engine when its last round was committed.
package struct EngineStatus: Sendable {
    /// Jobs by owner, queue and state.
    package var counts: [CountKey: CountValue] = [:]
    /// Totals since the start, by owner.
    package var totalsByOwner: [UInt32: CoreTotals] = [:]
    package var queues: [QueueStatus] = []
    /// Schedules by owner.
    package var schedules: [UInt32: CountValue] = [:]
    /// Why no jobs are accepted, if there is too little room.
    package var shortage: String?
    /// Why nothing can be stored, if the store fails.
    package var storageFailure: String?
    /// Watches by owner.
    package var watchesByUser: [UInt32: Int] = [:]
    package var runs = 0

    /// Jobs by state, of one owner or of all, in one queue or in all; has every state.
    package func jobs(of owner: UInt32? = nil, queue: String? = nil) -> [JobState: Int] {
        var jobs = Dictionary(uniqueKeysWithValues: JobState.allCases.map { ($0, 0) })
        for (key, value) in counts where owner.map({ $0 == key.owner }) ?? true {
            if queue.map({ $0 == key.queue }) ?? true { jobs[key.state, default: 0] += value.jobs }
        }
        return jobs
    }

    /// Users with jobs or schedules.
    package var owners: Set<UInt32> { Set(counts.keys.map(\.owner)).union(schedules.keys) }

    /// The bytes of an owner's jobs and schedules.
    package func stored(of owner: UInt32) -> Int64 {
        counts.reduce(schedules[owner]?.bytes ?? 0) { $1.key.owner == owner ? $0.saturatingAdding($1.value.bytes) : $0 }
    }

    package func watches(of user: UInt32? = nil) -> Int {
        user.map { watchesByUser[$0, default: 0] } ?? watchesByUser.values.reduce(0, +)
    }

    package func totals(of owner: UInt32? = nil) -> CoreTotals {
        guard let owner else { return totalsByOwner.values.reduce(CoreTotals(), +) }
        return totalsByOwner[owner] ?? CoreTotals()
    }
}
