import JobClient
import JobModel

/// Many jobs as a table on a terminal: running jobs first, then jobs that finished recently.
struct TableDisplay: ProgressDisplay {
    private struct Row {
        var snapshot: JobSnapshot
        var progress: JobProgress?
        /// When it finished.
        var ended: Timestamp?
    }

    /// The maximum number of jobs that are kept; others are added when they run.
    static let limit = 10_000
    /// How long finished jobs are shown, in seconds.
    static let afterglow = 5.0

    private let format: TextFormat
    /// Whether finished jobs disappear; jobs named on the command line stay.
    private let forgets: Bool
    private var rows: [Int64: Row] = [:]
    private var finished: [String: Int] = [:]
    private var tick = 0

    init(_ format: TextFormat, forgets: Bool) { (self.format, self.forgets) = (format, forgets) }

    var stays: Bool { !forgets }

    mutating func render(_ event: JobEvent, now: Timestamp) -> String {
        switch event.change {
        case .progress(let progress, _, _, _): rows[event.job]?.progress = progress
        case .state(let snapshot):
            let before = rows[event.job]
            guard before != nil || rows.count < Self.limit || snapshot.state == "running" else { break }
            if snapshot.isFinished, before?.ended == nil { finished[snapshot.state, default: 0] += 1 }
            let sameLink = before?.snapshot.json["link"] == snapshot.json["link"]
            rows[event.job] = Row(
                snapshot: snapshot, progress: snapshot.progress ?? (sameLink ? before?.progress : nil),
                ended: snapshot.isFinished ? now : nil)
        }
        return ""
    }

    /// The table, and a line of counts below it.
    mutating func lines(now: Timestamp, size: ScreenSize) -> [String] {
        defer { tick += 1 }
        if forgets {
            rows = rows.filter { _, row in row.ended.map { now.seconds(since: $0) < Self.afterglow } ?? true }
        }
        let (width, height) = (max(20, size.columns - 1), max(3, size.rows - 1))
        let order = ["running": 0, "scheduled": 2, "queued": 3]
        let sorted = rows.values.sorted {
            (order[$0.snapshot.state] ?? 1, $0.snapshot.id) < (order[$1.snapshot.state] ?? 1, $1.snapshot.id)
        }
        let format = format.within(width)
        let table = Table<JobText>(
            [.job, .state(rank: 1)] + Table.Column.progress(format, tick: tick)
                + [.init("WHAT", cut: .middle, least: 12, rank: 2, text: \.shortTitle)])
        let shown = sorted.prefix(max(1, height - 2))
        return table.lines(shown.map { JobText($0.snapshot, progress: $0.progress, now: now) }, format)
            + [summary.cut(to: width, mark: format.mark)]
    }

    private var summary: String {
        var counts = finished
        for row in rows.values where row.ended == nil { counts[row.snapshot.state, default: 0] += 1 }
        let states = ["running", "scheduled", "queued", "succeeded", "failed", "cancelled"]
        var parts = states.compactMap { state in counts[state].map { "\($0) \(state)" } }
        let rates = rows.values.filter { $0.snapshot.state == "running" && $0.progress?.unit == "bytes" }
            .compactMap { $0.progress?.rate }
        if rates.count > 1 { parts.append(Quantities.rate(rates.reduce(0, +))) }
        return parts.isEmpty ? "no jobs" : parts.joined(separator: ", ")
    }
}

/// One job as one line on a terminal.
struct BarDisplay: ProgressDisplay {
    /// Events of other jobs, such as its children, are ignored.
    let job: Int64
    let isUnicode: Bool
    let stays = false
    private var snapshot: JobSnapshot?
    private var progress: JobProgress?
    private var step: String?
    private var tick = 0

    init(job: Int64, isUnicode: Bool) { (self.job, self.isUnicode) = (job, isUnicode) }

    mutating func render(_ event: JobEvent, now: Timestamp) -> String {
        guard event.job == job else { return "" }
        switch event.change {
        case .state(let snapshot):
            // A retry or another link starts without progress.
            if snapshot.state != self.snapshot?.state || snapshot.json["link"] != self.snapshot?.json["link"] {
                progress = nil
            }
            self.snapshot = snapshot
            progress = snapshot.progress ?? progress
            step = Self.step(snapshot.json["link"]?.int ?? 0, of: snapshot.json["links"]?.int ?? 0)
        case .progress(let progress, let link, let links, _):
            self.progress = progress
            step = Self.step(link, of: links)
        }
        return ""
    }

    private static func step(_ link: Int, of links: Int) -> String? { links > 0 ? "link \(link)/\(links)" : nil }

    mutating func lines(now: Timestamp, size: ScreenSize) -> [String] {
        guard let snapshot, !snapshot.isFinished else { return [] }
        defer { tick += 1 }
        // The last column stays free: some terminals wrap as soon as it is written.
        let width = max(10, size.columns - 1)
        let text = JobText(snapshot, now: now)
        if snapshot.state == "running", let progress {
            let bar = ProgressBar(width: width, isUnicode: isUnicode)
            return [bar.line(title: text.shortTitle, progress: progress, step: step, tick: tick)]
        }
        let runtime = snapshot.state == "running" ? text.runtime.map { " \(Quantities.age($0))" } ?? "" : ""
        let words = [text.shortTitle, step ?? "", snapshot.state.sanitized + runtime, text.detail]
        return [words.filter { !$0.isEmpty }.joined(separator: "  ").cut(to: width, mark: isUnicode ? "…" : "...")]
    }
}
