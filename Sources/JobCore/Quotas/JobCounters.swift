import JobModel

/// Counts jobs by owner, queue and state, and what they take up on disk, without asking the store.
struct JobCounters {
    struct Key: Hashable {
        let owner: UInt32
        let queue: String
    }

    /// Jobs by `JobState.number`: a dictionary of states took a tenth of the core's time for a submission.
    private var rows: [Key: [Int]] = [:]
    private static let noJobs = JobState.allCases.map { _ in 0 }
    /// Scheduled and queued jobs.
    private var waiting: [UInt32: Int] = [:]
    private(set) var allWaiting = 0
    private var bytes: [UInt32: Int64] = [:]
    private(set) var finishedBytes: Int64 = 0
    private var finishedBytesByOwner: [UInt32: Int64] = [:]

    /// Begins with what the store counted at the start; jobs that are stored as running count as running.
    mutating func load(_ stored: [JobCount]) {
        for entry in stored {
            add(entry.count, Key(owner: entry.owner, queue: entry.queue), entry.state)
            addBytes(entry.bytes, entry.owner, entry.state)
        }
    }

    /// Counts `count` new jobs of an owner in a queue and a state.
    mutating func add(_ count: Int, owner: UInt32, queue: String, _ state: JobState) {
        add(count, Key(owner: owner, queue: queue), state)
    }

    /// A job was removed that was counted in `state`, and with what was `stored` of it where it is in memory.
    mutating func remove(_ job: RemovedJob, countedAs state: JobState, stored: (size: Int64, state: JobState)?) {
        add(-1, Key(owner: job.owner, queue: job.queue), state)
        addBytes(-(stored?.size ?? job.size), job.owner, stored?.state ?? job.state)
    }

    mutating func move(_ job: Job, from old: JobState) {
        guard old != job.state else { return }
        let key = Key(owner: job.owner, queue: job.spec.queue)
        // In this order, so that the row of a single job stays.
        add(1, key, job.state)
        add(-1, key, old)
    }

    private mutating func add(_ count: Int, _ key: Key, _ state: JobState) {
        rows[key, default: Self.noJobs][state.number] += count
        if count < 0, rows[key] == Self.noJobs { rows[key] = nil }
        guard state == .scheduled || state == .queued else { return }
        allWaiting += count
        let own = waiting[key.owner, default: 0] + count
        waiting[key.owner] = own == 0 ? nil : own
    }

    /// Counts bytes of a job in `state` as stored, or as stored no more where negative.
    mutating func addBytes(_ count: Int64, _ owner: UInt32, _ state: JobState) {
        if count == 0 { return }
        let sum = bytes[owner, default: 0].saturatingAdding(count)
        bytes[owner] = sum == 0 ? nil : sum
        guard state.isTerminal else { return }
        finishedBytes = finishedBytes.saturatingAdding(count)
        let finished = finishedBytesByOwner[owner, default: 0].saturatingAdding(count)
        finishedBytesByOwner[owner] = finished == 0 ? nil : finished
    }

    /// The owner whose finished jobs take up most; nil where nobody but `except` has more than an equal part of `total`.
    func largestFinished(above total: Int64, except passed: Set<UInt32>) -> UInt32? {
        let part = total / Int64(max(1, finishedBytesByOwner.count))
        let largest = finishedBytesByOwner.filter { $0.value > part && !passed.contains($0.key) }
        return largest.max { ($0.value, $1.key) < ($1.value, $0.key) }?.key
    }

    /// Scheduled and queued jobs of one owner.
    func waiting(of owner: UInt32) -> Int { waiting[owner, default: 0] }

    /// Bytes that jobs of one owner take up.
    func bytes(of owner: UInt32) -> Int64 { bytes[owner, default: 0] }

    /// Owners and queues that have jobs in `state`, in order.
    func keys(with state: JobState) -> [Key] {
        rows.filter { $0.value[state.number] != 0 }.map(\.key).sorted { ($0.queue, $0.owner) < ($1.queue, $1.owner) }
    }

    /// The names of the queues that have jobs, of one owner or all, in order.
    func queues(of owner: UInt32? = nil) -> [String] {
        Set(rows.keys.lazy.filter { owner == nil || $0.owner == owner }.map(\.queue)).sorted()
    }

    /// Jobs by state, of one queue or all, of one owner or all.
    func totals(queue: String? = nil, owner: UInt32? = nil) -> [JobState: Int] {
        var totals: [JobState: Int] = [:]
        for (key, row) in rows where (queue == nil || key.queue == queue) && (owner == nil || key.owner == owner) {
            for state in JobState.allCases where row[state.number] != 0 {
                totals[state, default: 0] += row[state.number]
            }
        }
        return totals
    }
}
