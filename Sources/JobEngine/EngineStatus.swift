package import JobModel
package import JobCore

/// The state of the engine when its last round was committed.
package struct EngineStatus: Sendable {
    package var core = Core.Status.initial
    package var queues: [QueueStatus] = []
    /// The other nodes that have each program.
    var otherPrograms: [String: [String]] = [:]
    /// Why nothing can be stored, if the store fails.
    package var storageFailure: String?

    /// Jobs by state, of one owner or of all, in one queue or in all; has every state.
    package func jobs(of owner: UInt32? = nil, queue: String? = nil) -> [JobState: Int] {
        var jobs = Dictionary(uniqueKeysWithValues: JobState.allCases.map { ($0, 0) })
        for (key, value) in core.counts where owner ?? key.owner == key.owner && queue ?? key.queue == key.queue {
            jobs[key.state, default: 0] += value.jobs
        }
        return jobs
    }

    /// Users with jobs or schedules.
    package var owners: Set<UInt32> { Set(core.counts.keys.map(\.owner)).union(core.schedules.keys) }

    /// The bytes of an owner's jobs and schedules.
    package func stored(of owner: UInt32) -> Int64 {
        core.counts.reduce(core.schedules[owner]?.bytes ?? 0) { sum, count in
            count.key.owner == owner ? sum.saturatingAdding(count.value.bytes) : sum
        }
    }

    package func watches(of user: UInt32? = nil) -> Int {
        user.map { core.watches[$0, default: 0] } ?? core.watches.values.reduce(0, +)
    }

    package func totals(of owner: UInt32? = nil) -> CoreTotals {
        guard let owner else { return core.totals.values.reduce(CoreTotals(), +) }
        return core.totals[owner] ?? CoreTotals()
    }
}
