import JobClient
import JobModel

/// Many jobs as a table on a terminal that is drawn over and over: those that run first, then those that ended just now.
struct TableDisplay: ProgressDisplay {
    private struct Row {
        var snapshot: JobSnapshot
        var progress: JobProgress?
        /// When it ended, of a finished one.
        var ended: Timestamp?
    }

    /// The most jobs that are kept; further ones are shown when they run.
    static let limit = 10_000
    /// The seconds for which a finished job stays.
    static let afterglow = 5.0

    private let isUnicode: Bool
    /// Whether finished jobs disappear after a while; jobs that were named on the command line stay.
    private let forgets: Bool
    private var rows: [Int64: Row] = [:]
    private var finished: [String: Int] = [:]
    /// The number of lines on the screen.
    private var drawn = 0
    private var tick = 0

    init(isUnicode: Bool, forgets: Bool) {
        self.isUnicode = isUnicode
        self.forgets = forgets
    }

    mutating func render(_ event: JobEvent, now: Timestamp) -> String {
        switch event.change {
        case .progress(let progress, _, _, _): rows[event.job]?.progress = progress
        case .state(let snapshot):
            guard rows[event.job] != nil || rows.count < Self.limit || snapshot.state == "running" else { break }
            let isFinished = snapshot.isFinished
            if isFinished, rows[event.job]?.ended == nil { finished[snapshot.state, default: 0] += 1 }
            let sameLink = rows[event.job]?.snapshot.json["link"] == snapshot.json["link"]
            rows[event.job] = Row(
                snapshot: snapshot, progress: snapshot.progress ?? (sameLink ? rows[event.job]?.progress : nil),
                ended: isFinished ? now : nil)
        }
        return ""
    }

    mutating func draw(now: Timestamp, size: ScreenSize) -> String {
        defer { tick += 1 }
        if forgets {
            rows = rows.filter { _, row in row.ended.map { now.seconds(since: $0) < Self.afterglow } ?? true }
        }
        let lines = lines(now: now, width: max(20, size.columns - 1), height: max(3, size.rows - 1))
        let text = home + lines.map { "\($0)\u{1B}[K\n" }.joined() + "\u{1B}[J"
        drawn = lines.count
        return text
    }

    mutating func clear() -> String {
        defer { drawn = 0 }
        return drawn == 0 ? "" : home + "\u{1B}[J"
    }

    /// The jobs that were named stay on the screen as they ended.
    mutating func end(now: Timestamp, size: ScreenSize) -> String {
        forgets ? clear() : draw(now: now, size: size)
    }

    /// Moves to where the table begins.
    private var home: String { drawn == 0 ? "\r" : "\r\u{1B}[\(drawn)A" }

    /// The table with a line of counts below it, in at most `height` lines.
    func lines(now: Timestamp, width: Int, height: Int) -> [String] {
        let order = ["running": 0, "scheduled": 2, "queued": 3]
        let sorted = rows.values.sorted {
            (order[$0.snapshot.state] ?? 1, $0.snapshot.id) < (order[$1.snapshot.state] ?? 1, $1.snapshot.id)
        }
        let mark = isUnicode ? "…" : "..."
        var table = Table([
            Table.Column("JOB", isNumber: true), Table.Column("STATE"), Table.Column("PROGRESS"), Table.Column("WHAT"),
        ])
        let barWidth = min(24, width / 5)
        for row in sorted.prefix(max(1, height - 2)) {
            table.append([
                String(row.snapshot.id), row.snapshot.state.sanitized, cell(row, width: barWidth, now: now),
                JobText(row.snapshot, now: now).shortTitle,
            ])
        }
        return table.lines(width: width, mark: mark) + [summary.cut(to: width, mark: mark)]
    }

    private func cell(_ row: Row, width: Int, now: Timestamp) -> String {
        guard row.snapshot.state == "running", let progress = row.progress else {
            return JobText(row.snapshot, now: now).detail
        }
        let bar = ProgressBar(width: width, isUnicode: isUnicode).bar(progress.fraction, width: width, tick: tick)
        let rate = progress.unit == "bytes" ? progress.rate.map(Quantities.rate) : nil
        return [bar, JobText.brief(progress), rate].compactMap(\.self).joined(separator: " ")
    }

    private var summary: String {
        var counts = finished
        for row in rows.values where row.ended == nil { counts[row.snapshot.state, default: 0] += 1 }
        let states = ["running", "scheduled", "queued", "succeeded", "failed", "cancelled"]
        let parts = states.compactMap { state in counts[state].map { "\($0) \(state)" } }
        return parts.isEmpty ? "no jobs" : parts.joined(separator: ", ")
    }
}
