import JobCore
import JobModel

extension EngineLoop {
    /// When subscribers are told of progress next; nil if there is none.
    var nextProgress: SteadyTime? {
        intervals.isEmpty || engine.board.isEmpty ? nil : intervals.values.map(\.end).min()
    }

    /// Tells subscribers of progress, at most once per interval that one of them asks for.
    func reportProgress(at now: SteadyTime) {
        if intervals.isEmpty, core.progressIntervals.isEmpty { return }
        func end(_ length: Int) -> SteadyTime { now.saturatingAdding(Int64(length)) }
        intervals = core.progressIntervals.reduce(into: [:]) { present, length in
            present[length] = intervals[length] ?? (end(length), [:])
        }
        guard let next = nextProgress, next <= now else { return }
        let present = engine.board.present()
        var news: [JobID: [Int: JobProgress]] = [:]
        let over = intervals.filter { $0.value.end <= now }
        for (length, interval) in over {
            for (job, progress) in present {
                if let new = progress.news(since: interval.told[job]) { news[job, default: [:]][length] = new }
            }
        }
        if !news.isEmpty { tell(news) }
        // Progress takes at most a tenth of the thread's time. The machine may have slept meanwhile, which is no work.
        let pause = 10 * Int(min(1000, engine.clock.steady().saturatingSubtracting(now)))
        for length in over.keys { intervals[length] = (end(max(length, pause)), present) }
    }

    private func tell(_ news: [JobID: [Int: JobProgress]]) {
        var updates: [[SubscriptionID]: [ProgressRow]] = [:]
        // The round only reads, so nothing is synced.
        let end = store.round { (transaction) throws(StoreError) in
            for (job, news) in news {
                guard let (row, watchers) = try core.watchers(of: job, in: transaction) else { continue }
                for (length, ids) in watchers {
                    guard let news = news[length], news.isOf(row.run) else { continue }
                    updates[ids, default: []] += news.rows(of: row)
                }
            }
        }
        guard case .committed = end else { return }
        for (ids, rows) in updates where !rows.isEmpty { deliver(.progress(ProgressBatch(rows)), to: ids) }
    }
}
