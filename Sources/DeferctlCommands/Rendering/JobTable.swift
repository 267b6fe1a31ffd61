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
        func running(_ text: JobText) -> JobProgress? { text.job.state == "running" ? text.progress : nil }
        return [
            // The bar is never cut; the titles are cut first.
            Self("PROGRESS", cut: .end, least: width + 6, rank: 3) { text in
                guard let progress = running(text) else {
                    return StyledText(text.detail, text.job.state == "failed" ? .bad : .plain)
                }
                let amount = progress.fraction == nil ? progress.brief : progress.brief.aligned(to: 5)
                return StyledText("\(format.bar(progress.fraction, width: width, tick: tick)) \(amount)", .active)
            },
            .number("RATE", rank: 4) { running($0)?.speed ?? "" },
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
        _ jobs: [JobSnapshot], now: Timestamp, _ format: TextFormat = TextFormat(), showsOwners: Bool = false
    ) -> [String] {
        Table<JobText>(
            [.job] + (showsOwners ? [.owner(rank: 4)] : []) + [
                .state(),
                .init("DETAIL", cut: .end, rank: 1) { StyledText($0.detail, $0.job.state == "failed" ? .bad : .plain) },
                .number("AGE", rank: 2) { $0.age.map(Quantities.age) ?? "" }, .queue(rank: 3),
                .init("WHAT", cut: .middle, least: 14, text: \.title),
            ]
        ).lines(jobs.map { JobText($0, now: now) }, format)
    }
}

extension JobProgress {
    /// The percentage, the amount, the rate and the remaining time, as far as they are known.
    var parts: [String] {
        [fraction.map(Quantities.percent), amount, speed, eta.map { Quantities.clock($0) + " left" }].compactMap(\.self)
    }

    var amount: String {
        guard let total else { return counted(completed) }
        let done = unit == "bytes" ? Quantities.size(completed) : "\(completed)"
        return "\(done) of \(counted(total))"
    }

    /// The percentage, or else what is done.
    var brief: String { fraction.map(Quantities.percent) ?? counted(completed) }

    var speed: String? {
        rate.map { unit == "bytes" ? Quantities.rate($0) : "\(Quantities.fixed($0)) \(unit.sanitized)/s" }
    }

    private func counted(_ count: Int64) -> String {
        unit == "bytes" ? Quantities.size(count) : "\(count) \(unit.sanitized)"
    }
}

extension TextFormat {
    /// The line for the progress of a job called `title`.
    ///
    /// If it does not fit, the remaining time is left out first, then the rate, then the amounts, then the bar. `tick` moves
    /// the mark of a bar without a known total.
    func line(_ progress: JobProgress, title: String, step: String? = nil, tick: Int = 0) -> String {
        let width = width ?? 100
        var parts = progress.parts
        if progress.fraction != nil { parts[0] = parts[0].aligned(to: 5) }
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
