import JobClient
import JobModel

/// Jobs as rows of a table.
enum JobTable {
    /// The table of `jobs` as they are at `now`, line by line.
    static func lines(
        _ jobs: [JobSnapshot], now: Timestamp, width: Int?, isUnicode: Bool = true, showsHead: Bool = true
    )
        -> [String]
    {
        var table = Table([
            Table.Column("JOB", isNumber: true), Table.Column("STATE"), Table.Column("DETAIL"),
            Table.Column("AGE", isNumber: true), Table.Column("QUEUE"), Table.Column("WHAT"),
        ])
        for job in jobs {
            let text = JobText(job, now: now)
            table.append([
                String(job.id), job.state.sanitized, text.detail, text.age.map(Quantities.age) ?? "",
                job.json["queue"]?.string?.sanitized ?? "", text.title,
            ])
        }
        return table.lines(width: width, mark: isUnicode ? "…" : "...", showsHead: showsHead)
    }
}
