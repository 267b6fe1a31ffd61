import JobModel
import JobStore

/// How many jobs stand in which state, by owner and queue, kept without asking the store.
struct JobCounters {
    struct Place: Hashable {
        let owner: UInt32
        let queue: String
    }

    private var counts: [Place: [JobState: Int]] = [:]
    private var waiting: [UInt32: Int] = [:]
    private(set) var allWaiting = 0

    mutating func load(_ stored: [JobCount]) {
        for entry in stored { add(entry.count, Place(owner: entry.owner, queue: entry.queue), entry.state) }
    }

    /// Counts `count` new jobs that are like `job` in owner, queue and state.
    mutating func add(_ job: Job, _ count: Int = 1) { add(count, Place(job), job.state) }
    mutating func remove(_ job: RemovedJob) { add(-1, Place(owner: job.owner, queue: job.queue), job.state) }

    mutating func move(_ job: Job, from old: JobState) {
        guard old != job.state else { return }
        add(-1, Place(job), old)
        add(1, Place(job), job.state)
    }

    private mutating func add(_ count: Int, _ place: Place, _ state: JobState) {
        counts[place, default: [:]][state, default: 0] += count
        if counts[place]?[state] == 0 { counts[place]?[state] = nil }
        if counts[place]?.isEmpty == true { counts[place] = nil }
        guard state == .scheduled || state == .queued else { return }
        allWaiting += count
        waiting[place.owner, default: 0] += count
        if waiting[place.owner] == 0 { waiting[place.owner] = nil }
    }

    /// The names of the queues that have jobs.
    var queues: Set<String> { Set(counts.keys.map(\.queue)) }

    /// Scheduled and queued jobs of one owner.
    func waiting(of owner: UInt32) -> Int { waiting[owner, default: 0] }

    /// Jobs by state, of one queue or all, of one owner or all.
    func totals(queue: String? = nil, owner: UInt32? = nil) -> [JobState: Int] {
        var totals: [JobState: Int] = [:]
        for (place, states) in counts
        where (queue == nil || place.queue == queue) && (owner == nil || place.owner == owner) {
            totals.merge(states, uniquingKeysWith: +)
        }
        return totals
    }
}

extension JobCounters.Place {
    init(_ job: Job) {
        self.init(owner: job.owner, queue: job.spec.queue)
    }
}
