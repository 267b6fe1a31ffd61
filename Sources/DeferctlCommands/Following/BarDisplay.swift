import JobClient
import JobModel

/// One job as one line of a terminal.
struct BarDisplay: ProgressDisplay {
    /// Events of other jobs, such as its children, are not shown.
    let job: Int64
    let isUnicode: Bool
    private var snapshot: JobSnapshot?
    private var progress: JobProgress?
    private var step: String?
    private var tick = 0

    init(job: Int64, isUnicode: Bool) { (self.job, self.isUnicode) = (job, isUnicode) }

    mutating func render(_ event: JobEvent, now: Timestamp) -> String {
        guard event.job == job else { return "" }
        switch event.change {
        case .state(let snapshot):
            // A retry or the next link begins from nothing.
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

    private static func step(_ link: Int, of links: Int) -> String? {
        links > 0 ? "link \(link)/\(links)" : nil
    }

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
        let detail = text.detail
        let runtime = snapshot.state == "running" ? text.runtime.map { " \(Quantities.age($0))" } ?? "" : ""
        let words = [text.shortTitle, step, snapshot.state.sanitized + runtime, detail.isEmpty ? nil : detail]
        return [words.compactMap(\.self).joined(separator: "  ").cut(to: width, mark: isUnicode ? "…" : "...")]
    }
}
