import InMemoryStore
import JobModel

/// How many jobs are stored, by owner, queue and state: counted by what became durable.
struct Counts {
    struct Key: Hashable {
        let owner: UInt32
        let queue: String
    }

    /// By state.
    private(set) var all = Array(repeating: 0, count: 6)
    private(set) var rows: [Key: [Int]] = [:]
    private(set) var waiting: [UInt32: Int] = [:]
    private(set) var allWaiting = 0
    private(set) var bytes: [UInt32: Int64] = [:]

    /// Counts a job that takes up so many bytes, or no longer where `count` is -1.
    mutating func add(_ job: Job, size: Int64, _ count: Int) {
        let key = Key(owner: job.owner, queue: job.spec.queue)
        rows[key, default: Array(repeating: 0, count: 6)][job.state.number] += count
        all[job.state.number] += count
        bytes[job.owner, default: 0] += Int64(count) * size
        guard job.state == .queued || job.state == .scheduled else { return }
        waiting[job.owner, default: 0] += count
        allWaiting += count
    }

    func queued(of owner: UInt32, in queue: String) -> Int {
        rows[Key(owner: owner, queue: queue)]?[JobState.queued.number] ?? 0
    }

    /// By state, of one owner or all, of one queue or all.
    func totals(owner: UInt32?, queue: String? = nil) -> [Int] {
        var totals = Array(repeating: 0, count: 6)
        for (key, states) in rows where (owner == nil || key.owner == owner) && (queue == nil || key.queue == queue) {
            for index in totals.indices { totals[index] += states[index] }
        }
        return totals
    }
}
