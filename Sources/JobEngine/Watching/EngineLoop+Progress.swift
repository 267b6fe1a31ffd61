import JobCore
import JobModel

/// What subscriptions that ask for progress at one interval are told next.
struct ProgressInterval {
    var end: SteadyTime
    /// Jobs with news, and the news of each.
    var jobs: [JobID: RunProgress.News] = [:]
}

extension EngineLoop {
    /// When subscribers are told of progress next; nil if there is none.
    var nextProgress: SteadyTime? {
        guard !intervals.isEmpty else { return nil }
        let isActive = engine.board.isActive
        return intervals.values.filter { isActive || !$0.jobs.isEmpty }.map(\.end).min()
    }

    /// Tells subscribers of progress, at most once per interval that one of them asks for.
    func reportProgress(at now: SteadyTime) {
        if intervals.isEmpty, core.progressIntervals.isEmpty { return }
        func end(_ length: Int) -> SteadyTime { now.saturatingAdding(Int64(length)) }
        intervals = core.progressIntervals.reduce(into: [:]) { present, length in
            present[length] = intervals[length] ?? ProgressInterval(end: end(length))
        }
        guard let next = nextProgress, next <= now else { return }
        let changes = engine.board.takeChanges()
        var due: [Int: [JobID: RunProgress.News]] = [:]
        for (length, var interval) in intervals {
            interval.jobs.merge(changes) { $0.adding($1) }
            if interval.end <= now {
                if !interval.jobs.isEmpty { due[length] = interval.jobs }
                interval = ProgressInterval(end: end(length))
            }
            intervals[length] = interval
        }
        if !due.isEmpty { tell(due) }
    }

    private func tell(_ due: [Int: [JobID: RunProgress.News]]) {
        var updates: [[SubscriptionID]: (progress: [ProgressRow], output: [ProgressRow])] = [:]
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
                        updates[ids, default: ([], [])].progress.append(
                            ProgressRow(
                                job: job, link: row.link,
                                news: .progress(
                                    progress, links: row.plan.links.count, coalesced: max(0, news.reports - 1))))
                    }
                    if news.hasOutput, let program {
                        updates[ids, default: ([], [])].output.append(
                            ProgressRow(
                                job: job, link: program.link,
                                news: .output(attempt: program.attempt, size: program.output ?? 0)))
                    }
                }
            }
        }
        guard case .committed = end else { return }
        for (ids, rows) in updates {
            if !rows.progress.isEmpty { deliver(.progress(ProgressBatch(rows.progress)), to: ids) }
            if !rows.output.isEmpty { deliver(.output(ProgressBatch(rows.output)), to: ids) }
        }
    }
}

extension Progress {
    /// False for a list without ended children, and for completed work, which the job's end tells at once.
    fileprivate var isNews: Bool { total != completed && (unit != .jobs || completed > 0) }
}
