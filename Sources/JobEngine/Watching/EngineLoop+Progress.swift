import JobCore
import JobModel

/// The progress of a job's run or list, and the size of its program's output.
struct JobProgress {
    /// Nil for a list without ended children, and for completed work, which the job's end tells at once.
    private(set) var progress: Progress?
    private(set) var output: Int64?
    /// The number of reports of its run.
    private(set) var reports: Int
    let run: RunProgress?

    init(_ progress: Progress?, _ run: RunProgress?) {
        let snapshot = run?.snapshot
        self.progress = progress.flatMap {
            $0.total != $0.completed && ($0.unit != .jobs || $0.completed > 0) ? $0 : nil
        }
        (output, reports, self.run) = (snapshot?.output, snapshot?.reports ?? 0, run)
    }

    /// The changes since an earlier moment; nil for none.
    func news(since former: JobProgress?) -> JobProgress? {
        var news = self
        if let former, former.run === run {
            news.reports -= former.reports
            if former.output == output { news.output = nil }
            let (was, now) = (former.progress, progress)
            if was?.completed == now?.completed, was?.total == now?.total { news.progress = nil }
        }
        return news.progress == nil && news.output == nil ? nil : news
    }

    /// The news as rows for subscribers of the job.
    func rows(of job: JobRow) -> [ProgressRow] {
        let progress = progress.map { progress in
            ProgressRow.News.progress(progress, links: job.plan.links.count, coalesced: max(0, reports - 1))
        }
        let output = output.map { ProgressRow.News.output(attempt: max(1, job.attempt), size: $0) }
        return [progress, output].compactMap(\.self).map { ProgressRow(job: job.id, link: job.link, news: $0) }
    }
}

/// The progress that subscriptions with one interval were told last, and the time of the next report.
struct ProgressInterval {
    var end: SteadyTime
    var told: [JobID: JobProgress] = [:]
    /// ``Board/activity`` at that time.
    var listChanges = 0
}

extension EngineLoop {
    /// When subscribers are told of progress next; nil if there is none.
    var nextProgress: SteadyTime? {
        guard !intervals.isEmpty else { return nil }
        let activity = engine.board.activity
        return intervals.values.filter { activity.hasRuns || $0.listChanges != activity.listChanges }.map(\.end).min()
    }

    /// Tells subscribers of progress, at most once per interval that one of them asks for.
    func reportProgress(at now: SteadyTime) {
        if intervals.isEmpty, core.progressIntervals.isEmpty { return }
        func end(_ length: Int) -> SteadyTime { now.saturatingAdding(Int64(length)) }
        intervals = core.progressIntervals.reduce(into: [:]) { present, length in
            present[length] = intervals[length] ?? ProgressInterval(end: end(length))
        }
        guard let next = nextProgress, next <= now else { return }
        let (listChanges, present) = (engine.board.activity.listChanges, engine.board.present())
        var news: [JobID: [Int: JobProgress]] = [:]
        for (length, interval) in intervals where interval.end <= now {
            for (job, progress) in present {
                if let new = progress.news(since: interval.told[job]) { news[job, default: [:]][length] = new }
            }
            intervals[length] = ProgressInterval(end: end(length), told: present, listChanges: listChanges)
        }
        if !news.isEmpty { tell(news) }
    }

    private func tell(_ news: [JobID: [Int: JobProgress]]) {
        var updates: [[SubscriptionID]: [ProgressRow]] = [:]
        // The round only reads, so nothing is synced.
        let end = store.round { (transaction) throws(StoreError) in
            for (job, news) in news {
                guard let (row, watchers) = try core.watchers(of: job, in: transaction),
                    engine.board.isAbout(row.run, of: job)
                else { continue }
                for (length, ids) in watchers { updates[ids, default: []] += news[length]?.rows(of: row) ?? [] }
            }
        }
        guard case .committed = end else { return }
        for (ids, rows) in updates where !rows.isEmpty { deliver(.progress(ProgressBatch(rows)), to: ids) }
    }
}
