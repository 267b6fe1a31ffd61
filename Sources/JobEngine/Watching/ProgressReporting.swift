import JobModel
import JobCore

/// When which jobs' progress is told, at the intervals that subscriptions ask for.
struct ProgressReporting {
    /// Jobs that have come further, by interval in milliseconds.
    private(set) var dirty: [Int: Set<JobID>] = [:]
    /// When an interval ends.
    private var ends: [Int: SteadyTime] = [:]
    /// Lists that have come further since the last look.
    private var lists: Set<JobID> = []

    /// When the next look is; nil where nothing has come further that a subscriber wants to know.
    private(set) var next: SteadyTime?

    func isDue(at now: SteadyTime) -> Bool { next.map { $0 <= now } ?? false }

    /// A list has come further; it is told with the next look.
    mutating func changed(_ job: JobID) { lists.insert(job) }

    /// The lists that have come further since this was last asked.
    mutating func takeLists() -> Set<JobID> {
        defer { lists = [] }
        return lists
    }

    /// Progress was made that was not looked at: it is, at the end of the shortest interval.
    mutating func wake(_ intervals: some Collection<Int>, at now: SteadyTime) {
        guard let shortest = intervals.min() else { return }
        let time = max(now, ends[shortest] ?? now)
        next = min(next ?? time, time)
    }

    /// Adds what has come further; gives what is to be told now, by interval. The first interval begins with the first progress.
    mutating func look(
        _ jobs: Set<JobID>, _ intervals: some Collection<Int>, at now: SteadyTime
    ) -> [Int: Set<JobID>] {
        let present = Set(intervals)
        dirty = dirty.filter { present.contains($0.key) }
        ends = ends.filter { present.contains($0.key) }
        next = nil
        var due: [Int: Set<JobID>] = [:]
        for interval in present {
            if !jobs.isEmpty { dirty[interval, default: []].formUnion(jobs) }
            guard let jobs = dirty[interval] else { continue }
            var end = ends[interval] ?? now.saturatingAdding(Int64(interval))
            if end <= now {
                due[interval] = jobs
                dirty[interval] = nil
                end = now.saturatingAdding(Int64(interval))
            }
            ends[interval] = end
            next = min(next ?? end, end)
        }
        return due
    }

    /// Whether the next look comes as soon as new progress is to be told.
    func looksSoon(_ intervals: some Collection<Int>, after now: SteadyTime) -> Bool {
        guard let next, let shortest = intervals.min() else { return false }
        return next <= now.saturatingAdding(Int64(shortest))
    }
}

extension EngineLoop {
    /// A source made progress, and none was awaited.
    func progressWasMade() { reporting.wake(core.progressIntervals, at: now.steady) }

    /// Tells the progress that is due.
    func reportProgress(at now: SteadyTime) {
        let changed = reports.take().union(reporting.takeLists())
        let jobs = services.board.affected(by: changed)
        let due = reporting.look(jobs, core.progressIntervals, at: now)
        if !reporting.looksSoon(core.progressIntervals, after: now), !reports.rest() { progressWasMade() }
        guard !due.isEmpty else { return }
        var rows: [[SubscriptionID]: [ProgressRow]] = [:]
        // Nothing is written, so nothing is synced.
        let end = store.round { (transaction) throws(StoreError) in
            for job in due.values.reduce(into: Set<JobID>(), { $0.formUnion($1) }).sorted() {
                guard let progress = services.board.progress(of: job), progress.isNews,
                    let (row, watchers) = try core.watchers(of: job, in: transaction)
                else { continue }
                let told = ProgressRow(
                    job: job, link: row.link, links: row.plan.links.count, progress,
                    coalesced: max(0, services.board.takeUpdates(of: job) - 1))
                for (interval, ids) in watchers where due[interval]?.contains(job) == true {
                    rows[ids, default: []].append(told)
                }
            }
        }
        guard case .committed = end else { return }
        for (ids, rows) in rows.sorted(by: { $0.key.lexicographicallyPrecedes($1.key) }) {
            let batch = ProgressBatch(rows)
            tell(ids) { $0.receive(batch) }
        }
    }
}

extension Progress {
    /// Neither a list without ended children, nor what its end says at once.
    fileprivate var isNews: Bool { total != completed && (unit != .jobs || completed > 0) }
}
