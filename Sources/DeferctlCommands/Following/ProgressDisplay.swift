import JobClient
import JobModel

/// The progress of jobs, as lines for a log or as a drawing on a terminal.
protocol ProgressDisplay: Sendable {
    /// Applies an event and returns the text to write at once.
    mutating func render(_ event: JobEvent, now: Timestamp) -> String
    /// The lines to draw on a terminal of this size.
    mutating func lines(now: Timestamp, size: ScreenSize) -> [String]
    /// Whether the last lines stay on the screen.
    var stays: Bool { get }
    /// Sets the last line that a job's program has written.
    mutating func set(line: String, of job: Int64)
}

extension ProgressDisplay {
    mutating func set(line: String, of job: Int64) {}
}

/// Lines for a log: each change of state, and progress at each tenth, or every ten seconds if the total is unknown.
struct StepLines: ProgressDisplay {
    private struct Job {
        var state: String
        var link: Int
        var tenth = 0
        var lastLine: Timestamp
    }

    /// The maximum number of unfinished jobs whose progress is shown.
    static let limit = 10_000

    private var jobs: [Int64: Job] = [:]
    private let isSilent: Bool

    let stays = false

    init(isSilent: Bool = false) { self.isSilent = isSilent }

    func lines(now: Timestamp, size: ScreenSize) -> [String] { [] }

    mutating func render(_ event: JobEvent, now: Timestamp) -> String {
        if isSilent { return "" }
        return switch event.change {
        case .state(let snapshot): render(snapshot, now: now)
        case .progress(let progress, _, _, _): render(progress, of: event.job, now: now)
        case .output: ""
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
        let step = snapshot.state == "running" && links > 0 ? "link \(link) of \(links)" : ""
        let words = [step, text.detail].filter { !$0.isEmpty }.joined(separator: ", ")
        return "job \(snapshot.id) \(snapshot.state.sanitized)\(words.isEmpty ? "" : " (\(words))"): \(text.title)\n"
    }

    private mutating func render(_ progress: JobProgress, of id: Int64, now: Timestamp) -> String {
        guard var job = jobs[id] else { return "" }
        var parts = [ProgressBar.amount(progress)]
        if let fraction = progress.fraction {
            let tenth = Int(fraction * 10)
            guard tenth > job.tenth, tenth < 10 else { return "" }
            job.tenth = tenth
            parts.insert(Quantities.percent(fraction), at: 0)
        } else {
            guard now.seconds(since: job.lastLine) >= 10 else { return "" }
        }
        job.lastLine = now
        jobs[id] = job
        if let rate = progress.rate, progress.unit == "bytes" { parts.append(Quantities.rate(rate)) }
        if let eta = progress.eta { parts.append(Quantities.clock(eta) + " left") }
        return "job \(id) \(parts.joined(separator: ", "))\n"
    }
}
