import Glibc
import JobClient
import JobModel

extension Table.Column where Row == JobText {
    static var job: Self { .number("JOB") { "\($0.job.id)" } }

    static func state(rank: Int? = nil) -> Self { Self("STATE", rank: rank) { StyledText(state: $0.job.state) } }

    static func owner(rank: Int) -> Self {
        Self("OWNER", cut: .end, least: 6, rank: rank, text: { $0.job.json["owner"].map(Accounts.name) ?? "" })
    }

    static func queue(rank: Int) -> Self {
        Self("QUEUE", cut: .end, least: 7, rank: rank, text: { $0.job.json.text("queue") ?? "" })
    }

    /// A bar with its percentage, the rate, and the remaining time; for a job that does not run, its detail.
    static func progress(_ format: TextFormat, tick: Int) -> [Self] {
        let width = min(24, max(6, (format.width ?? 80) / 5))
        let bar = ProgressBar(width: width, isUnicode: format.isUnicode)
        func running(_ text: JobText) -> JobProgress? { text.job.state == "running" ? text.progress : nil }
        return [
            // The bar is never cut; the titles are cut first.
            Self("PROGRESS", cut: .end, least: width + 6, rank: 3) { text in
                guard let progress = running(text) else {
                    return StyledText(text.detail, text.job.state == "failed" ? .bad : .plain)
                }
                let word = JobText.brief(progress)
                let amount = progress.fraction == nil ? word : word.aligned(to: 5)
                return StyledText("\(bar.bar(progress.fraction, width: width, tick: tick)) \(amount)", .active)
            },
            .number("RATE", rank: 4) { text in
                running(text).flatMap { progress in progress.rate.map { ProgressBar.rate($0, progress) } } ?? ""
            },
            .number("LEFT", rank: 5) { running($0)?.eta.map(Quantities.clock) ?? "" },
        ]
    }
}

extension JobSnapshot {
    /// Whether another user owns it.
    var isOfOther: Bool { json["owner"].map { $0.int != Int(geteuid()) } ?? false }
}

enum JobTable {
    static func lines(
        _ jobs: [JobSnapshot], now: Timestamp, _ format: TextFormat = TextFormat(), showsHead: Bool = true,
        showsOwners: Bool = false
    ) -> [String] {
        Table<JobText>(
            [.job] + (showsOwners ? [.owner(rank: 4)] : []) + [
                .state(),
                .init("DETAIL", cut: .end, rank: 1) { StyledText($0.detail, $0.job.state == "failed" ? .bad : .plain) },
                .number("AGE", rank: 2) { $0.age.map(Quantities.age) ?? "" }, .queue(rank: 3),
                .init("WHAT", cut: .middle, least: 14, text: \.title),
            ]
        ).lines(jobs.map { JobText($0, now: now) }, format, showsHead: showsHead)
    }
}
