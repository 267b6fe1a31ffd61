import JobClient
import JobModel

/// The latest state and progress of a job.
private struct FollowedJob {
    private(set) var snapshot: JobSnapshot
    private(set) var progress: JobProgress?
    private(set) var ended: Timestamp?
    /// The last line that its program has written.
    var line: String?

    /// The job after the `change`; nil if its state is still unknown.
    init?(_ before: FollowedJob?, _ change: JobEvent.Change, now: Timestamp) {
        switch change {
        case .progress(let progress, _, _, _):
            guard let before else { return nil }
            self = before
            self.progress = progress
        case .output:
            guard let before else { return nil }
            self = before
        case .state(let snapshot):
            self.snapshot = snapshot
            // A retry or another link starts without progress.
            let old = before?.snapshot
            let isSame = old?.state == snapshot.state && old?.json["link"] == snapshot.json["link"]
            progress = snapshot.progress ?? (isSame ? before?.progress : nil)
            ended = snapshot.isFinished ? now : nil
            line = isSame ? before?.line : nil
        }
    }
}

/// Many jobs as a table on a terminal: running jobs first, then jobs that finished recently.
struct TableDisplay: ProgressDisplay {
    /// The maximum number of jobs that are kept; others are added when they run.
    static let limit = 10_000
    static let afterglow = 5.0

    private let format: TextFormat
    /// Whether finished jobs disappear; jobs named on the command line stay.
    private let forgets: Bool
    private var rows: [Int64: FollowedJob] = [:]
    private var finished: [String: Int] = [:]
    private var tick = 0

    init(_ format: TextFormat, forgets: Bool) { (self.format, self.forgets) = (format, forgets) }

    var stays: Bool { !forgets }

    mutating func render(_ event: JobEvent, now: Timestamp) -> String {
        let before = rows[event.job]
        guard let job = FollowedJob(before, event.change, now: now),
            before != nil || rows.count < Self.limit || job.snapshot.state == "running"
        else { return "" }
        if job.ended != nil, before?.ended == nil { finished[job.snapshot.state, default: 0] += 1 }
        rows[event.job] = job
        return ""
    }

    mutating func set(line: String, of job: Int64) { rows[job]?.line = line }

    /// The table, and a line of counts below it.
    mutating func lines(now: Timestamp, size: ScreenSize) -> [String] {
        defer { tick += 1 }
        if forgets {
            rows = rows.filter { _, row in row.ended.map { now.seconds(since: $0) < Self.afterglow } ?? true }
        }
        let (width, height) = (max(20, size.columns - 1), max(3, size.rows - 1))
        let order = ["running": 0, "scheduled": 2, "held": 3, "queued": 4]
        let sorted = rows.values.sorted {
            (order[$0.snapshot.state] ?? 1, $0.snapshot.id) < (order[$1.snapshot.state] ?? 1, $1.snapshot.id)
        }
        let format = format.within(width)
        let table = Table<JobText>(
            [.job, .state(rank: 1)] + Table.Column.progress(format, tick: tick)
                + [.init("WHAT", cut: .middle, least: 12, rank: 2, text: \.titleAndLine)])
        let shown = sorted.prefix(max(1, height - 2))
        return table.lines(shown.map { JobText($0.snapshot, progress: $0.progress, line: $0.line, now: now) }, format)
            + [summary.cut(to: width, mark: format.mark)]
    }

    private var summary: String {
        var counts = finished
        for row in rows.values where row.ended == nil { counts[row.snapshot.state, default: 0] += 1 }
        let states = ["running", "scheduled", "held", "queued", "succeeded", "failed", "cancelled"]
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
    private var followed: FollowedJob?
    private var tick = 0

    init(job: Int64, isUnicode: Bool) { (self.job, self.isUnicode) = (job, isUnicode) }

    mutating func render(_ event: JobEvent, now: Timestamp) -> String {
        if event.job == job { followed = FollowedJob(followed, event.change, now: now) }
        return ""
    }

    mutating func set(line: String, of job: Int64) { if job == self.job { followed?.line = line } }

    mutating func lines(now: Timestamp, size: ScreenSize) -> [String] {
        guard let snapshot = followed?.snapshot, !snapshot.isFinished else { return [] }
        defer { tick += 1 }
        // The last column stays free: some terminals wrap as soon as it is written.
        let width = max(10, size.columns - 1)
        let text = JobText(snapshot, now: now)
        let links = snapshot.json["links"]?.int ?? 0
        let step = links > 0 ? "link \(snapshot.json["link"]?.int ?? 0)/\(links)" : nil
        if snapshot.state == "running", let progress = followed?.progress {
            let bar = ProgressBar(width: width, isUnicode: isUnicode)
            return [bar.line(title: text.shortTitle, progress: progress, step: step, tick: tick)]
        }
        let runtime = snapshot.state == "running" ? text.runtime.map { " \(Quantities.age($0))" } ?? "" : ""
        let words = [
            text.shortTitle, step ?? "", snapshot.state.sanitized + runtime, text.detail, followed?.line ?? "",
        ]
        return [words.filter { !$0.isEmpty }.joined(separator: "  ").cut(to: width, mark: isUnicode ? "…" : "...")]
    }
}
