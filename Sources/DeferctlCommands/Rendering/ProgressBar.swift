import JobClient
import JobModel

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
        let text: String
        if let fraction {
            let filled = min(room, max(0, Int((fraction * Double(room)).rounded(.down))))
            let point = isUnicode || filled == room ? "" : ">"
            text =
                String(repeating: full, count: filled) + point
                + String(repeating: empty, count: max(0, room - filled - point.count))
        } else {
            // A short piece that moves to and fro.
            let piece = min(3, room)
            let way = max(1, room - piece)
            let position = tick % (2 * way)
            let before = position <= way ? position : 2 * way - position
            text =
                String(repeating: empty, count: before) + String(repeating: full, count: piece)
                + String(repeating: empty, count: max(0, room - piece - before))
        }
        return isUnicode ? text : "[\(text)]"
    }
}
