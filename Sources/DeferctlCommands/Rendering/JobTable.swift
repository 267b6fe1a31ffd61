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

struct ProgressBar {
    let width: Int
    let isUnicode: Bool

    /// The line for a job called `title`.
    ///
    /// If it does not fit, the remaining time is left out first, then the rate, then the amounts, then the bar. `tick` moves
    /// the mark of a bar without a known total.
    func line(title: String, progress: JobProgress, step: String? = nil, tick: Int = 0) -> String {
        var parts = [Self.amount(progress)]
        if let fraction = progress.fraction { parts.insert(Quantities.percent(fraction).aligned(to: 5), at: 0) }
        if let rate = progress.rate { parts.append(Self.rate(rate, progress)) }
        if let eta = progress.eta { parts.append(Quantities.clock(eta) + " left") }
        let mark = isUnicode ? "…" : "..."
        let head = [title.cut(to: max(8, width / 3), mark: mark), step].compactMap(\.self).joined(separator: "  ")
        while true {
            let right = parts.joined(separator: "  ")
            let room = width - head.columns - right.columns - 4
            if room >= 10 || parts.count == 1 {
                guard room >= 4 else { return "\(head)  \(right)".cut(to: width, mark: mark) }
                return "\(head)  \(bar(progress.fraction, width: min(room, 40), tick: tick))  \(right)"
            }
            parts.removeLast()
        }
    }

    static func rate(_ rate: Double, _ progress: JobProgress) -> String {
        progress.unit == "bytes" ? Quantities.rate(rate) : "\(Quantities.fixed(rate)) \(progress.unit.sanitized)/s"
    }

    static func amount(_ progress: JobProgress) -> String {
        guard let total = progress.total else { return amount(progress.completed, progress) }
        let done = progress.unit == "bytes" ? Quantities.size(progress.completed) : "\(progress.completed)"
        return "\(done) of \(amount(total, progress))"
    }

    static func amount(_ count: Int64, _ progress: JobProgress) -> String {
        progress.unit == "bytes" ? Quantities.size(count) : "\(count) \(progress.unit.sanitized)"
    }

    func bar(_ fraction: Double?, width: Int, tick: Int = 0) -> String {
        let room = max(1, isUnicode ? width : width - 2)
        let (full, empty) = isUnicode ? ("━", "─") : ("=", " ")
        var (before, length) = (0, min(3, room))
        if let fraction {
            length = min(room, max(0, Int((fraction * Double(room)).rounded(.down))))
        } else {
            // A short piece that moves to and fro.
            let way = max(1, room - length)
            let position = tick % (2 * way)
            before = position <= way ? position : 2 * way - position
        }
        let point = fraction == nil || isUnicode || length == room ? "" : ">"
        let text =
            String(repeating: empty, count: before) + String(repeating: full, count: length) + point
            + String(repeating: empty, count: max(0, room - before - length - point.count))
        return isUnicode ? text : "[\(text)]"
    }
}
