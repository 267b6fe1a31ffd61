import JobCore
import JobModel

/// Decides when subscriptions are told of progress: at most once per interval that one of them asks for.
struct ProgressReporting {
    private struct Interval {
        /// Jobs with news, and the news of each.
        var jobs: [JobID: RunProgress.News] = [:]
        /// Nil before the first progress.
        var end: SteadyTime?
    }

    /// By length in milliseconds.
    private var intervals: [Int: Interval] = [:]
    /// When ``look(_:_:at:)`` is due; nil while there is no progress to tell.
    private(set) var next: SteadyTime?

    /// Schedules a look at the end of the shortest interval, as there is progress.
    mutating func wake(_ lengths: some Collection<Int>, at now: SteadyTime) {
        guard let shortest = lengths.min() else { return }
        next = min(next ?? .max, max(now, intervals[shortest]?.end ?? now))
    }

    /// Adds news; returns the jobs to tell of now and their news, by interval.
    mutating func look(
        _ changes: [JobID: RunProgress.News], _ lengths: some Collection<Int>, at now: SteadyTime
    ) -> [Int: [JobID: RunProgress.News]] {
        intervals = intervals.filter { lengths.contains($0.key) }
        next = nil
        var due: [Int: [JobID: RunProgress.News]] = [:]
        for length in lengths {
            var interval = intervals[length] ?? Interval()
            for (job, news) in changes { interval.jobs[job, default: RunProgress.News()].add(news) }
            guard !interval.jobs.isEmpty else { continue }
            // The first interval begins with the first progress.
            var end = interval.end ?? now.saturatingAdding(Int64(length))
            if end <= now {
                due[length] = exchange(&interval.jobs, with: [:])
                end = now.saturatingAdding(Int64(length))
            }
            interval.end = end
            intervals[length] = interval
            next = min(next ?? end, end)
        }
        return due
    }
}

extension EngineLoop {
    func progressWasMade() { reporting.wake(core.progressIntervals, at: now.steady) }

    /// Tells subscribers of the progress that is due.
    func reportProgress(at now: SteadyTime) {
        let lengths = core.progressIntervals
        let due = reporting.look(engine.board.takeChanges(), lengths, at: now)
        if !engine.board.rest() { progressWasMade() }
        guard !due.isEmpty else { return }
        var rows: [[SubscriptionID]: [ProgressRow]] = [:]
        var outputs: [[SubscriptionID]: [ProgressRow]] = [:]
        // The round only reads, so nothing is synced.
        let end = store.round { (transaction) throws(StoreError) in
            for job in Set(due.values.flatMap(\.keys)).sorted() {
                let (progress, program) = (engine.board.progress(of: job), engine.board.program(of: job))
                guard progress?.isNews == true || program != nil,
                    let (row, watchers) = try core.watchers(of: job, in: transaction),
                    engine.board.isAbout(row.run, of: job)
                else { continue }
                for (length, ids) in watchers {
                    guard let news = due[length]?[job] else { continue }
                    if let progress, progress.isNews {
                        rows[ids, default: []].append(
                            ProgressRow(
                                job: job, link: row.link,
                                news: .progress(
                                    progress, links: row.plan.links.count, coalesced: max(0, news.reports - 1))))
                    }
                    if news.hasOutput, let program {
                        outputs[ids, default: []].append(
                            ProgressRow(
                                job: job, link: program.link,
                                news: .output(attempt: program.attempt, size: program.output ?? 0)))
                    }
                }
            }
        }
        guard case .committed = end else { return }
        for (ids, rows) in rows.sorted(by: { $0.key.lexicographicallyPrecedes($1.key) }) {
            deliver(.progress(ProgressBatch(rows)), to: ids)
        }
        for (ids, rows) in outputs.sorted(by: { $0.key.lexicographicallyPrecedes($1.key) }) {
            deliver(.output(ProgressBatch(rows)), to: ids)
        }
    }
}

extension Progress {
    /// False for a list without ended children, and for completed work, which the job's end tells at once.
    fileprivate var isNews: Bool { total != completed && (unit != .jobs || completed > 0) }
}
