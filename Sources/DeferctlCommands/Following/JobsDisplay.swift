import Glibc
import JobClient
import JobModel

struct FollowedJob {
    private(set) var snapshot: JobSnapshot
    private(set) var progress: JobProgress?
    private(set) var ended: Timestamp?
    /// The last line that its program has written.
    var line: String?
    /// When a log last told of it.
    private var told: Timestamp

    /// The job after the `change`; nil if its state is still unknown.
    init?(_ before: FollowedJob?, _ change: JobEvent.Change, now: Timestamp) {
        guard case .state(let snapshot) = change else {
            guard let before else { return nil }
            self = before
            if case .progress(let progress, _, _, _) = change { self.progress = progress }
            return
        }
        (self.snapshot, told) = (snapshot, now)
        ended = snapshot.isFinished ? now : nil
        progress = snapshot.progress
        // A retry or another link starts without progress.
        guard let before, isLike(before) else { return }
        (progress, line) = (progress ?? before.progress, before.line)
    }

    /// Whether the job is in the same state and link.
    private func isLike(_ other: FollowedJob) -> Bool {
        snapshot.state == other.snapshot.state && snapshot.json["link"] == other.snapshot.json["link"]
    }

    private var tenth: Int { Int(min(1, max(0, progress?.fraction ?? 0)) * 10) }

    /// The line for a log: of each new state or link, and of progress at each tenth, or every ten seconds if the total is unknown.
    mutating func tell(since before: FollowedJob?, now: Timestamp) -> String {
        guard let before, isLike(before) else {
            let text = JobText(snapshot, now: now)
            let (link, links) = (snapshot.json["link"]?.int ?? 0, snapshot.json["links"]?.int ?? 0)
            let step = snapshot.state == "running" && links > 0 ? "link \(link) of \(links)" : ""
            let words = [step, text.detail].filter { !$0.isEmpty }.joined(separator: ", ")
            let detail = words.isEmpty ? "" : " (\(words))"
            return "job \(snapshot.id) \(snapshot.state.sanitized)\(detail): \(text.title)\n"
        }
        guard let progress, progress != before.progress else { return "" }
        if progress.fraction == nil ? now.seconds(since: told) < 10 : tenth <= before.tenth || tenth == 10 { return "" }
        told = now
        return "job \(snapshot.id) \(progress.parts.joined(separator: ", "))\n"
    }
}

/// The progress of jobs, drawn on a terminal or told in lines for a log.
///
/// A single job is drawn as a line; many as a table, running jobs first, then jobs that finished recently; and many downloads
/// as one line of counts.
struct JobsDisplay: Sendable {
    /// The maximum number of jobs that are kept; others are added when they run.
    static let limit = 10_000
    static let afterglow = 5.0

    let format: TextFormat
    /// Whether a log tells of the jobs, which are not drawn then.
    var isLog = false
    /// The single job; events of others, such as its children, are ignored.
    var job: Int64?
    /// Whether the line of the single job stays with its outcome.
    var keepsLine = false
    /// Whether finished jobs disappear from the table; jobs named on the command line stay.
    var forgets = false
    /// The number of downloads that are counted.
    var total: Int?
    /// Whether nothing is drawn or told.
    var isSilent = false
    private(set) var bytes: Int64 = 0
    private(set) var rows: [Int64: FollowedJob] = [:]
    private(set) var finished: [String: Int] = [:]
    private(set) var tick = 0

    /// Whether the last lines stay on the screen.
    var stays: Bool { (job == nil || keepsLine) && !forgets }

    /// Applies an event, and returns what a log tells of it.
    mutating func render(_ event: JobEvent, now: Timestamp) -> String {
        if let total { return count(event, of: total) }
        let before = rows[event.job]
        guard job ?? event.job == event.job, var job = FollowedJob(before, event.change, now: now) else { return "" }
        let text = isLog && !isSilent ? job.tell(since: before, now: now) : ""
        guard before != nil || rows.count < Self.limit || job.snapshot.state == "running" else { return text }
        if job.ended != nil, before?.ended == nil { finished[job.snapshot.state, default: 0] += 1 }
        rows[event.job] = isLog && job.ended != nil ? nil : job
        return text
    }

    /// Counts the end of a download; a log tells of each tenth.
    private mutating func count(_ event: JobEvent, of total: Int) -> String {
        guard case .state(let job) = event.change, job.isFinished else { return "" }
        let tenth = ended * 10 / total
        finished[job.state, default: 0] += 1
        bytes &+= Int64(job.result?["size"]?.int ?? 0)
        return isLog && !isSilent && ended * 10 / total > tenth ? counts(of: total) + "\n" : ""
    }

    private var ended: Int { finished.values.reduce(0, +) }

    private func counts(of total: Int) -> String {
        let others = ["failed", "cancelled"].compactMap { state in finished[state].map { ", \($0) \(state)" } }
        return "\(ended) of \(total) files, \(Quantities.size(bytes))\(others.joined())"
    }

    /// Sets the last line that a job's program has written.
    mutating func set(line: String, of job: Int64) { rows[job]?.line = line }

    /// The lines to draw on a terminal of this size.
    mutating func lines(now: Timestamp, size: ScreenSize) -> [String] {
        if isSilent { return [] }
        defer { tick += 1 }
        if let total {
            let bar = format.bar(Double(ended) / Double(total), width: 20)
            return ["\(bar)  \(counts(of: total))".cut(to: max(10, size.columns - 1), mark: format.mark)]
        }
        guard let job else { return table(now, size) }
        // The last column stays free: some terminals wrap as soon as it is written.
        return rows[job].flatMap { line(of: $0, now, width: max(10, size.columns - 1)) }.map { [$0] } ?? []
    }

    private func line(of followed: FollowedJob, _ now: Timestamp, width: Int) -> String? {
        let snapshot = followed.snapshot
        guard !snapshot.isFinished || keepsLine else { return nil }
        let text = JobText(snapshot, now: now)
        let links = snapshot.json["links"]?.int ?? 0
        let step = links > 0 && !snapshot.isFinished ? "link \(snapshot.json["link"]?.int ?? 0)/\(links)" : nil
        if snapshot.state == "running", let progress = followed.progress {
            return format.within(width).line(progress, title: text.shortTitle, step: step, tick: tick)
        }
        let runtime = snapshot.state == "running" ? text.runtime.map { " \(Quantities.age($0))" } ?? "" : ""
        let state = snapshot.state.sanitized + runtime
        let words = [text.shortTitle, step ?? "", state, text.detail, followed.line ?? ""]
        return words.filter { !$0.isEmpty }.joined(separator: "  ").cut(to: width, mark: format.mark)
    }

    private mutating func table(_ now: Timestamp, _ size: ScreenSize) -> [String] {
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

/// Lines on a terminal that are redrawn in place.
struct Drawing {
    private var lines: [String] = []
    var isEmpty: Bool { lines.isEmpty }

    /// The text that replaces the lines on the screen by `lines`, and leaves the cursor behind the last one.
    mutating func replace(by lines: [String]) -> String {
        defer { self.lines = lines }
        if lines == self.lines { return "" }
        let start = self.lines.count > 1 ? "\r\u{1B}[\(self.lines.count - 1)A" : "\r"
        return start + lines.map { $0 + "\u{1B}[K" }.joined(separator: "\n") + "\u{1B}[J"
    }
}

/// Draws a display on standard error repeatedly.
actor ProgressScreen {
    private static let pause = Duration.milliseconds(100)

    private let console: Console
    private var display: JobsDisplay
    private var drawing = Drawing()
    private var isFinished = false

    init(console: Console, display: JobsDisplay) { (self.console, self.display) = (console, display) }

    func show(_ event: JobEvent) {
        let text = display.render(event, now: .now)
        if !console.showsMessages { write(text) }
    }

    /// The jobs whose output is read for its last line.
    private static let mostLines = 50
    private var jobsWithLines: Set<Int64> = []

    /// Shows the last line of a program, if the event tells of output.
    func showLine(of event: JobEvent, from client: JobClient) async {
        guard console.showsMessages, event.isOutput,
            jobsWithLines.contains(event.job) || jobsWithLines.count < Self.mostLines
        else { return }
        jobsWithLines.insert(event.job)
        if let line = await client.lastLine(of: event.job) { display.set(line: line, of: event.job) }
    }

    /// Writes a message above the drawing.
    func say(_ message: String) {
        clear()
        console.say(message)
        draw()
    }

    /// Draws nothing any more.
    func finish() {
        guard !isFinished else { return }
        if display.stays { draw() } else { clear() }
        // The last lines stay above what follows.
        if !drawing.isEmpty { write("\n") }
        isFinished = true
    }

    private func clear() { write(drawing.replace(by: [])) }

    /// Draws while `body` runs, in a separate task: a slow terminal does not delay the reading of events.
    nonisolated func showing<Value: Sendable>(
        _ body: @Sendable @escaping () async throws -> Value
    ) async throws -> Value {
        guard console.showsMessages else { return try await body() }
        return try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                while !Task.isCancelled {
                    try? await Task.sleep(for: Self.pause)
                    if !Task.isCancelled { await self.draw() }
                }
            }
            defer { group.cancelAll() }
            let outcome: Result<Value, any Error>
            do { outcome = .success(try await body()) } catch { outcome = .failure(error) }
            await finish()
            return try outcome.get()
        }
    }

    private func draw() {
        guard console.showsMessages, !isFinished else { return }
        write(drawing.replace(by: display.lines(now: .now, size: ScreenSize(of: console.messages))))
    }

    /// Errors are ignored: the work goes on even if its progress cannot be shown.
    private func write(_ text: String) {
        if !text.isEmpty { try? console.messages.write(text) }
    }
}
