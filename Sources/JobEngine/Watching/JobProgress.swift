import DeferredKit
import Dispatch
import JobModel

/// What is known of a job that runs: the progress of its run, and its list.
struct JobProgress {
    /// Nil if only its list is known.
    var run: RunID?
    /// Its owner and queue, which matter only at the node where it runs.
    var owner: UInt32 = 0
    var queue = ""
    var parent: JobID?
    var list: ListRow?
    /// Nil before the first report.
    var latest: Progress?
    /// The number of reports of its run.
    private(set) var reports = 0
    /// The unit of later reports.
    var unit = Progress.Unit.bytes
    /// The bytes that its program has written; nil if it wrote nothing.
    var output: Int64?
    var rate = RateMeter()

    /// The bytes transferred so far; 0 if the source counts something else.
    var bytes: Int64 { latest.map { $0.unit == .bytes ? $0.completed : 0 } ?? 0 }

    /// Whether it can be shown while the row of its job names this run.
    func isOf(_ run: RunID?) -> Bool { list != nil || self.run == run }

    mutating func report(_ update: ProgressUpdate) {
        latest = Progress(
            completed: update.completed, total: update.total, unit: unit, rate: rate.measure(update.completed))
        reports += 1
    }

    /// The changes since an earlier moment; nil for none.
    func news(since former: JobProgress?) -> JobProgress? {
        var news = self
        if let former, former.run == run {
            news.reports -= former.reports
            if former.output == output { news.output = nil }
            let (was, now) = (former.latest, latest)
            if was?.completed == now?.completed, was?.total == now?.total { news.latest = nil }
        }
        // The end of a job tells completed work at once, and a list without ended children has nothing to tell.
        if let latest, latest.total == latest.completed || latest.unit == .jobs && latest.completed == 0 {
            news.latest = nil
        }
        return news.latest == nil && news.output == nil ? nil : news
    }

    /// The news as rows for subscribers of the job.
    func rows(of job: JobRow) -> [ProgressRow] {
        let progress = latest.map { progress in
            ProgressRow.News.progress(progress, links: job.plan.links.count, coalesced: max(0, reports - 1))
        }
        let output = output.map { ProgressRow.News.output(attempt: max(1, job.attempt), size: $0) }
        return [progress, output].compactMap(\.self).map { ProgressRow(job: job.id, link: job.link, news: $0) }
    }
}

/// Measures a rate as an exponentially weighted mean.
struct RateMeter {
    /// The minimum number of nanoseconds between two measurements.
    private static let window: UInt64 = 250_000_000

    private var last: (time: UInt64, completed: Int64)?
    private var rate: Double?

    /// The rate in units per second; nil before the second measurement.
    mutating func measure(_ completed: Int64) -> Double? {
        let now = DispatchTime.now().uptimeNanoseconds
        guard let last, completed >= last.completed, now >= last.time else {
            self.last = (now, completed)
            rate = nil
            return nil
        }
        guard now - last.time >= Self.window else { return rate }
        let present = Double(completed - last.completed) / (Double(now - last.time) / 1e9)
        rate = rate.map { 0.6 * $0 + 0.4 * present } ?? present
        self.last = (now, completed)
        return rate
    }
}
