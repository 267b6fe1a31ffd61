import JobClient
import JobModel

/// Draws how far something is, in one line.
struct ProgressBar {
    /// The columns there are.
    let width: Int
    let isUnicode: Bool

    /// The line for a job called `title` at `progress`.
    ///
    /// Where it does not fit, the time left goes first, then the rate, then the amounts, then the bar. `tick` moves the
    /// mark of a bar whose end is not known.
    func line(title: String, progress: JobProgress, step: String? = nil, tick: Int = 0) -> String {
        var parts = parts(of: progress)
        let mark = isUnicode ? "…" : "..."
        while true {
            let right = parts.joined(separator: "  ")
            let name = title.cut(to: max(8, width / 3), mark: mark)
            let head = [name, step].compactMap(\.self).joined(separator: "  ")
            let room = width - head.columns - right.columns - 4
            if room >= 10 || parts.count == 1 {
                guard room >= 4 else { return "\(head)  \(right)".cut(to: width, mark: mark) }
                return "\(head)  \(bar(progress.fraction, width: min(room, 40), tick: tick))  \(right)"
            }
            parts.removeLast()
        }
    }

    /// Per cent, amounts, rate and time left: what is known of them, the most useful first.
    private func parts(of progress: JobProgress) -> [String] {
        var parts: [String] = []
        if let fraction = progress.fraction { parts.append(Quantities.percent(fraction).aligned(to: 5)) }
        parts.append(Self.amount(progress))
        if let rate = progress.rate { parts.append(Self.rate(rate, progress)) }
        if let eta = progress.eta { parts.append(Quantities.clock(eta) + " left") }
        return parts
    }

    /// How fast it goes.
    static func rate(_ rate: Double, _ progress: JobProgress) -> String {
        progress.unit == "bytes" ? Quantities.rate(rate) : "\(Quantities.fixed(rate)) \(progress.unit.sanitized)/s"
    }

    /// How much of how much.
    static func amount(_ progress: JobProgress) -> String {
        guard progress.unit == "bytes" else {
            let unit = progress.unit.sanitized
            return progress.total.map { "\(progress.completed) of \($0) \(unit)" } ?? "\(progress.completed) \(unit)"
        }
        let done = Quantities.size(progress.completed)
        return progress.total.map { "\(done) of \(Quantities.size($0))" } ?? done
    }

    /// The bar alone, `width` columns wide.
    func bar(_ fraction: Double?, width: Int, tick: Int = 0) -> String {
        let room = max(1, isUnicode ? width : width - 2)
        guard let fraction else { return frame(moving(room: room, tick: tick)) }
        let filled = min(room, max(0, Int((fraction * Double(room)).rounded(.down))))
        if isUnicode {
            return String(repeating: "━", count: filled) + String(repeating: "─", count: room - filled)
        }
        let isWhole = filled == room
        let done = isWhole ? String(repeating: "=", count: room) : String(repeating: "=", count: filled) + ">"
        return frame(done + String(repeating: " ", count: max(0, room - filled - 1)))
    }

    /// A short piece that goes to and fro.
    private func moving(room: Int, tick: Int) -> String {
        let piece = min(3, room)
        let way = max(1, room - piece)
        let position = tick % (2 * way)
        let before = position <= way ? position : 2 * way - position
        let (empty, full) = isUnicode ? ("─", "━") : (" ", "=")
        return String(repeating: empty, count: before) + String(repeating: full, count: piece)
            + String(repeating: empty, count: max(0, room - piece - before))
    }

    private func frame(_ text: String) -> String { isUnicode ? text : "[\(text)]" }
}

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
            .number("RATE", rank: 4), .number("LEFT", rank: 5),
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
