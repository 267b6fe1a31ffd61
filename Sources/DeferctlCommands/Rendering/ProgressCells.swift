import JobClient
import JobModel

/// How far a job is, as cells of a table: a bar with its per cent, the rate, and the time left.
///
/// Of a job that does not run the first says the most useful thing to know instead.
struct ProgressCells {
    let isUnicode: Bool
    /// The columns of a bar.
    let barWidth: Int

    init(isUnicode: Bool, screenWidth: Int) {
        self.isUnicode = isUnicode
        barWidth = min(24, max(6, screenWidth / 5))
    }

    /// The columns for them. The bar is never cut: the jobs' titles are, before it.
    var columns: [Table.Column] {
        [
            Table.Column("PROGRESS", cut: .end, least: barWidth + 6, rank: 3),
            Table.Column("RATE", isNumber: true, rank: 4), Table.Column("LEFT", isNumber: true, rank: 5),
        ]
    }

    /// The cells of `job`, with the newest `progress` that is known of it.
    func cells(_ job: JobSnapshot, progress: JobProgress?, tick: Int, now: Timestamp) -> [StyledText] {
        guard job.state == "running", let progress else {
            return [StyledText(JobText(job, now: now).detail, job.state == "failed" ? .bad : .plain), "", ""]
        }
        let bar = ProgressBar(width: barWidth, isUnicode: isUnicode).bar(progress.fraction, width: barWidth, tick: tick)
        let done = progress.fraction == nil ? JobText.brief(progress) : JobText.brief(progress).aligned(to: 5)
        return [
            StyledText("\(bar) \(done)", .active),
            StyledText(progress.rate.map { ProgressBar.rate($0, progress) } ?? ""),
            StyledText(progress.eta.map(Quantities.clock) ?? ""),
        ]
    }
}
