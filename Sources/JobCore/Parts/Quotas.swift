package import JobModel

/// Counts jobs by owner, queue and state, and their bytes on disk.
/// The counts are rows; this is their copy in memory, with the changes that the current round must write.
package struct Quotas {
    /// The jobs of one owner, or of all.
    struct Holding: Hashable {
        /// Scheduled, held and queued jobs.
        var waiting = 0
        var bytes: Int64 = 0
        var finished = 0
        var finishedBytes: Int64 = 0

        fileprivate mutating func add(_ jobs: Int, _ more: Int64, _ state: JobState) {
            bytes = bytes.saturatingAdding(more)
            if state == .scheduled || state == .held || state == .queued { waiting += jobs }
            guard state.isTerminal else { return }
            finished += jobs
            finishedBytes = finishedBytes.saturatingAdding(more)
        }
    }

    private(set) package var counts: [CountKey: CountValue] = [:]
    /// Keys that the current round changed.
    private var changed: Set<CountKey> = []
    private var owners: [UInt32: Holding] = [:]
    private(set) var all = Holding()
    var schedules: [UInt32: CountValue] = [:]

    init() {}

    init(counts: [CountKey: CountValue], schedules: [UInt32: CountValue]) {
        (self.counts, self.schedules) = (counts, schedules)
        for (key, value) in counts { hold(value.jobs, value.bytes, key) }
    }

    private mutating func hold(_ jobs: Int, _ bytes: Int64, _ key: CountKey) {
        owners[key.owner, default: Holding()].add(jobs, bytes, key.state)
        all.add(jobs, bytes, key.state)
    }

    /// Counts a job as it is stored now; one that changes is removed as it was before.
    mutating func add(_ job: JobRow) { add(1, job.size, of: job) }
    mutating func remove(_ job: JobRow) { add(-1, -job.size, of: job) }

    private mutating func add(_ jobs: Int, _ bytes: Int64, of job: JobRow) {
        let key = CountKey(owner: job.owner, queue: job.queue, state: job.state)
        counts[key, default: CountValue()].add(jobs, bytes)
        changed.insert(key)
        hold(jobs, bytes, key)
    }

    /// Counts a set, changed or removed schedule.
    mutating func moved(_ owner: UInt32, from old: Schedule?, to new: Schedule?) {
        var value = schedules[owner] ?? CountValue()
        value.add((new == nil ? 0 : 1) - (old == nil ? 0 : 1), (new?.storedSize ?? 0) - (old?.storedSize ?? 0))
        schedules[owner] = value.jobs > 0 ? value : nil
    }

    /// Takes in counts that another node has stored; call it before the first change of a round.
    mutating func replace(_ new: [CountKey: CountValue]) {
        for (key, value) in new {
            let old = counts[key] ?? CountValue()
            hold(value.jobs - old.jobs, value.bytes.saturatingSubtracting(old.bytes), key)
            counts[key] = value.jobs == 0 ? nil : value
        }
    }

    /// Returns the counts to store that changed since the last call.
    mutating func takeChanges() -> [CountKey: CountValue] {
        guard !changed.isEmpty else { return [:] }
        var changes: [CountKey: CountValue] = [:]
        for key in changed {
            let value = counts[key] ?? CountValue()
            changes[key] = value
            if value.jobs == 0 { counts[key] = nil }
        }
        changed.removeAll(keepingCapacity: true)
        return changes
    }

    func holding(of owner: UInt32) -> Holding { owners[owner] ?? Holding() }

    /// Returns the bytes of an owner's jobs and schedules.
    func stored(of owner: UInt32) -> Int64 {
        (owners[owner]?.bytes ?? 0).saturatingAdding(schedules[owner]?.bytes ?? 0)
    }

    /// Returns the bytes that a run's result may take, which finished jobs make room for.
    func room(of owner: UInt32, _ settings: CoreSettings) -> Int64 {
        let kept = stored(of: owner).saturatingSubtracting(holding(of: owner).finishedBytes)
        return max(0, settings.storedPerUser.saturatingSubtracting(kept))
    }

    /// Returns, for messages, how much an owner stores.
    func use(of owner: UInt32, _ settings: CoreSettings) -> String {
        "your jobs take up \(stored(of: owner)) of \(settings.storedPerUser) bytes"
    }

    /// The bytes of each owner's jobs and schedules.
    package var stored: [UInt32: Int64] {
        let all = owners.mapValues(\.bytes).merging(schedules.mapValues(\.bytes)) { $0.saturatingAdding($1) }
        return all.filter { $0.value > 0 }
    }

    /// The owners, queues and states with jobs, and those of them with queued jobs.
    var present: [CountKey] { counts.filter { $0.value.jobs > 0 }.map(\.key) }
    var queued: [CountKey] { present.filter { $0.state == .queued } }

    /// Whether there are more finished jobs, or bytes of them, than all owners together may keep.
    func hasExcess(_ settings: CoreSettings) -> Bool {
        all.finishedBytes > settings.retentionBytes || all.finished > settings.retentionCount
    }

    /// Returns the owner who loses the oldest finished job: one above the quota if that makes enough room, or the one with
    /// the most finished jobs or bytes; nil if all are within the limits.
    func owner(over settings: CoreSettings, except passed: Set<UInt32>) -> UInt32? {
        let overQuota = owners.filter { owner, holding in
            let excess = stored(of: owner).saturatingSubtracting(settings.storedPerUser)
            return excess > 0 && excess <= holding.finishedBytes && !passed.contains(owner)
        }
        if let owner = overQuota.keys.min() { return owner }
        guard hasExcess(settings) else { return nil }
        let isTooMuch = all.finishedBytes > settings.retentionBytes
        // Users within an equal share lose no jobs because of others.
        let sharers = owners.values.count { $0.finished > 0 }
        let owners = owners.filter { owner, holding in
            guard !passed.contains(owner), holding.finished > 0 else { return false }
            return isTooMuch
                ? holding.finishedBytes > settings.retentionBytes / Int64(max(1, sharers))
                : holding.finished > settings.retentionCount / max(1, sharers)
        }
        let largest =
            isTooMuch
            ? owners.max { ($0.value.finishedBytes, $1.key) < ($1.value.finishedBytes, $0.key) }
            : owners.max { ($0.value.finished, $1.key) < ($1.value.finished, $0.key) }
        return largest?.key
    }
}

extension CountValue {
    fileprivate mutating func add(_ jobs: Int, _ bytes: Int64) {
        self.jobs += jobs
        self.bytes = self.bytes.saturatingAdding(bytes)
    }
}
