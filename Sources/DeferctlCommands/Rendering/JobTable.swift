import JobClient
import JobModel

/// Jobs as rows of a table.
enum JobTable {
    /// The table of `jobs` as they are at `now`, line by line.
    static func lines(
        _ jobs: [JobSnapshot], now: Timestamp, width: Int?, isUnicode: Bool = true, showsHead: Bool = true,
        palette: Palette = .none
    ) -> [String] {
        var table = Table([
            Table.Column("JOB", isNumber: true), Table.Column("STATE"), Table.Column("DETAIL", cut: .end, rank: 1),
            Table.Column("AGE", isNumber: true, rank: 2), Table.Column("QUEUE", cut: .end, least: 7, rank: 3),
            Table.Column("WHAT", cut: .middle, least: 14),
        ])
        for job in jobs {
            let text = JobText(job, now: now)
            table.append([
                StyledText(String(job.id)), StyledText(job.state.sanitized, TextStyle(state: job.state)),
                StyledText(text.detail, job.state == "failed" ? .bad : .plain),
                StyledText(text.age.map(Quantities.age) ?? ""), StyledText(job.json["queue"]?.string?.sanitized ?? ""),
                StyledText(text.title),
            ])
        }
        return table.lines(width: width, mark: isUnicode ? "…" : "...", showsHead: showsHead, palette: palette)
    }
}
