import JobClient
import JobModel

/// The lines of `deferctl top`: for a screen of this size, with a message in the last one; without a size, everything.
struct TopPage {
    private let view: TopView
    private let size: ScreenSize?
    private let format: TextFormat
    private let now: Timestamp

    init(_ view: TopView, _ format: TextFormat, now: Timestamp, size: ScreenSize?) {
        (self.view, self.size, self.now) = (view, size, now)
        self.format = format.within(size.map { max(10, $0.columns) })
    }

    var lines: [String] {
        guard let sample = view.newest else { return [view.message ?? "asking the daemon"] }
        func room(below lines: [String]) -> Int { size.map { max(0, $0.rows - lines.count - 1) } ?? .max }
        var lines: [String]
        switch view.mode {
        case .help:
            lines = TopView.help.flatMap { String.hanging([$1], behind: $0.padded(to: 8), within: format.width) }
        case .output(let job): lines = output(of: job, room: room(below: [""]))
        default:
            lines = [head(sample), counts(sample), rates].filter { !$0.isEmpty }.map(fit)
            // The queues get at most half of the room.
            lines += queues(sample, room: room(below: lines) / 2)
            lines += jobs(sample, room: room(below: lines))
        }
        guard let size else { return lines }
        lines = Array(lines.prefix(max(0, size.rows - 1)))
        lines += Array(repeating: "", count: max(0, size.rows - 1 - lines.count))
        let message = (view.message?.sanitized ?? view.prompt).cut(to: size.columns, mark: format.mark)
        return lines + [format.paint(StyledText(message, view.mode == .jobs ? .faint : .heading))]
    }

    private func output(of job: Int64, room: Int) -> [String] {
        let head = fit([StyledText("output of job \(job)", .heading)])
        guard let output = view.output, output.job == job else { return [head] }
        let lines = output.text.split(omittingEmptySubsequences: false, whereSeparator: \.endsLine).suffix(room + 1)
            .map { fit([StyledText(String($0).sanitized)]) }
        return [head] + (lines.last == "" ? lines.dropLast() : lines).suffix(room)
    }

    /// As many of the parts as fit into a line.
    private func fit(_ parts: [StyledText]) -> String {
        var (plain, line) = ("", "")
        for part in parts {
            let separator = plain.isEmpty ? "" : "  "
            if let width = format.width, (plain + separator + part.text).columns > width {
                return plain.isEmpty ? part.text.cut(to: width, mark: format.mark) : line
            }
            plain += separator + part.text
            line += separator + format.paint(part)
        }
        return line
    }

    private func head(_ sample: TopSample) -> [StyledText] {
        let info = view.info
        let name = [info["name"]?.string, info["version"]?.string].compactMap { $0?.sanitized }.joined(separator: " ")
        var parts = [StyledText(name.isEmpty ? "deferd" : name, .heading)]
        if let uptime = sample.uptime { parts.append("up \(Quantities.span(uptime))") }
        for (member, one, many) in [("connections", "connection", "connections"), ("watches", "watch", "watches")] {
            guard let count = sample.stats[member]?.int else { continue }
            parts.append("\(count) \(count == 1 ? one : many)")
        }
        if info["you"]?["admin"]?.bool == false { parts.append(StyledText("your own jobs only", .faint)) }
        return parts
    }

    private func counts(_ sample: TopSample) -> [StyledText] {
        ["running", "queued", "scheduled", "held", "succeeded", "failed", "cancelled"].compactMap { state in
            let count = sample.stats["jobs"]?[state]?.int ?? 0
            // Few jobs are ever held.
            return state == "held" && count == 0
                ? nil : StyledText("\(count) \(state)", count == 0 ? .faint : TextStyle(state: state))
        }
    }

    private var rates: [StyledText] {
        guard let received = view.rate("bytes", "received"), let submitted = view.rate("totals", "submitted"),
            let finished = view.rate("totals", "succeeded", "failed", "cancelled"),
            let failed = view.rate("totals", "failed")
        else { return size == nil ? [] : [StyledText("rates come with the next sample", .faint)] }
        return [
            "\(Quantities.rate(received)) received", "\(Quantities.fixed(finished)) finished/s",
            "\(Quantities.fixed(submitted)) submitted/s",
            StyledText("\(Quantities.fixed(failed)) failed/s", failed > 0 ? .bad : .plain),
        ]
    }

    /// The busiest queues in at most `room` lines, of which the first is empty.
    private func queues(_ sample: TopSample, room: Int) -> [String] {
        guard room >= 3 else { return [] }
        func counts(_ queue: JSON) -> [Int] { ["running", "queued", "scheduled"].map { queue[$0]?.int ?? 0 } }
        // The sort is stable: equally busy queues keep the daemon's order.
        let sorted = sample.queues.sorted { counts($1).lexicographicallyPrecedes(counts($0)) }
        let shown = sorted.count <= room - 2 ? sorted : Array(sorted.prefix(max(1, room - 3)))
        let lines = [""] + QueueTable.lines(shown, format)
        if shown.count == sorted.count || lines.count >= room { return lines }
        return lines + [fit([StyledText("\(sorted.count - shown.count) more; see deferctl queue list", .faint)])]
    }

    /// The jobs in at most `room` lines, of which the first is empty: running ones first.
    private func jobs(_ sample: TopSample, room: Int) -> [String] {
        guard room >= 3 else { return [] }
        let jobs = view.jobs
        guard !jobs.isEmpty else {
            let text = view.filter.isEmpty ? "No job runs now." : "No job matches."
            return ["", fit([StyledText(text, .faint)])]
        }
        let hasAll = sample.isComplete && jobs.count <= room - 2
        let count = hasAll ? jobs.count : max(1, room - 3)
        // The selected job is always shown.
        let last = jobs.firstIndex { $0.id == view.selected } ?? 0
        let shown = jobs.dropFirst(max(0, last - count + 1)).prefix(count)
        let mark = Table<JobText>.Column("") { $0.job.id == view.selected ? (format.isUnicode ? "▸" : ">") : "" }
        let table = Table<JobText>(
            (view.selected == nil ? [] : [mark]) + [.job]
                + (shown.contains(where: \.isOfOther) ? [.owner(rank: 9)] : [])
                + [.state(rank: 7)] + Table.Column.progress(format, tick: view.tick) + [
                    .number("TIME", rank: 6) { $0.runtime.map(Quantities.age) ?? "" }, .queue(rank: 8),
                    .init("WHAT", cut: .middle, least: 12, text: \.titleAndLine),
                ])
        let lines = [""] + table.lines(shown.map { JobText($0, line: sample.lines[$0.id], now: now) }, format)
        if hasAll || lines.count >= room { return lines }
        let hidden = sample.isComplete ? "\(jobs.count - shown.count) more" : "more"
        return lines + [fit([StyledText("\(hidden); see deferctl list --all", .faint)])]
    }
}
