import JobClient
import JobModel

/// One job as one line of a terminal that is drawn over and over.
struct BarDisplay: ProgressDisplay {
    private let job: Int64
    private let isUnicode: Bool
    private var snapshot: JobSnapshot?
    private var progress: JobProgress?
    private var step: String?
    private var tick = 0
    /// The columns of the line on the screen.
    private var drawn = 0

    /// The line of the job with this id; events of others, such as its children, are not shown.
    init(job: Int64, isUnicode: Bool) {
        self.job = job
        self.isUnicode = isUnicode
    }

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

    mutating func draw(now: Timestamp, size: ScreenSize) -> String {
        guard let snapshot, !snapshot.isFinished else { return clear() }
        defer { tick += 1 }
        // The last column stays free: some terminals wrap as soon as it is written.
        let width = max(10, size.columns - 1)
        let text = JobText(snapshot, now: now)
        let line: String
        if snapshot.state == "running", let progress {
            line = ProgressBar(width: width, isUnicode: isUnicode)
                .line(title: text.shortTitle, progress: progress, step: step, tick: tick)
        } else {
            let detail = text.detail
            let runtime = snapshot.state == "running" ? text.runtime.map { " \(Quantities.age($0))" } ?? "" : ""
            let words = [text.shortTitle, step, snapshot.state.sanitized + runtime, detail.isEmpty ? nil : detail]
            line = words.compactMap(\.self).joined(separator: "  ").cut(to: width, mark: isUnicode ? "…" : "...")
        }
        defer { drawn = line.columns }
        return home(size) + "\(line)\u{1B}[K"
    }

    mutating func clear() -> String {
        drawn = 0
        return snapshot == nil ? "" : "\r\u{1B}[K"
    }

    /// Moves to where the line begins. A terminal that became narrower has broken it into several.
    private func home(_ size: ScreenSize) -> String {
        let more = drawn > size.columns ? (drawn - 1) / size.columns : 0
        return more == 0 ? "\r" : "\r\u{1B}[\(more)A\u{1B}[J"
    }
}
