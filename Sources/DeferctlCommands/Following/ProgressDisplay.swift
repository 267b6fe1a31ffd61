import JobClient
import JobModel

/// Shows the progress of jobs to people, as lines for a log or as a drawing that follows it.
protocol ProgressDisplay: Sendable {
    /// Applies an event and returns what is to be written at once.
    mutating func render(_ event: JobEvent, now: Timestamp) -> String
    /// The lines that a terminal of this size is to show now.
    mutating func lines(now: Timestamp, size: ScreenSize) -> [String]
    /// Whether the last lines stay on the screen.
    var stays: Bool { get }
}

extension ProgressDisplay {
    mutating func render(_ event: JobEvent, now: Timestamp) -> String { "" }
    mutating func lines(now: Timestamp, size: ScreenSize) -> [String] { [] }
    var stays: Bool { false }
}

/// Shows nothing.
struct NoDisplay: ProgressDisplay {}

/// Plain lines for a log: every change of state, and progress at each tenth, or every ten seconds where no end is known.
struct StepLines: ProgressDisplay {
    private struct Job {
        var state: String
        var link: Int
        var tenth = 0
        var lastLine: Timestamp
    }

    /// The most unfinished jobs for which progress is shown.
    static let limit = 10_000

    private var jobs: [Int64: Job] = [:]

    mutating func render(_ event: JobEvent, now: Timestamp) -> String {
        switch event.change {
        case .state(let snapshot): render(snapshot, now: now)
        case .progress(let progress, _, _, _): render(progress, of: event.job, now: now)
        }
    }

    private mutating func render(_ snapshot: JobSnapshot, now: Timestamp) -> String {
        let text = JobText(snapshot, now: now)
        let before = jobs[snapshot.id]
        let (link, links) = (snapshot.json["link"]?.int ?? 0, snapshot.json["links"]?.int ?? 0)
        let isSame = before?.state == snapshot.state && before?.link == link
        if snapshot.isFinished {
            jobs[snapshot.id] = nil
        } else if before != nil || jobs.count < Self.limit {
            jobs[snapshot.id] = Job(
                state: snapshot.state, link: link, tenth: isSame ? before?.tenth ?? 0 : 0, lastLine: now)
        }
        if isSame { return "" }
        let step = snapshot.state == "running" && links > 0 ? "link \(link) of \(links)" : nil
        let words = [step, text.detail.isEmpty ? nil : text.detail].compactMap(\.self).joined(separator: ", ")
        return "job \(snapshot.id) \(snapshot.state.sanitized)\(words.isEmpty ? "" : " (\(words))"): \(text.title)\n"
    }

    private mutating func render(_ progress: JobProgress, of id: Int64, now: Timestamp) -> String {
        guard var job = jobs[id] else { return "" }
        if let fraction = progress.fraction {
            let tenth = Int(fraction * 10)
            guard tenth > job.tenth, tenth < 10 else { return "" }
            job.tenth = tenth
        } else {
            guard now.seconds(since: job.lastLine) >= 10 else { return "" }
        }
        job.lastLine = now
        jobs[id] = job
        var parts = [ProgressBar.amount(progress)]
        if let fraction = progress.fraction { parts.insert(Quantities.percent(fraction), at: 0) }
        if let rate = progress.rate, progress.unit == "bytes" { parts.append(Quantities.rate(rate)) }
        if let eta = progress.eta { parts.append(Quantities.clock(eta) + " left") }
        return "job \(id) \(parts.joined(separator: ", "))\n"
    }
}
