import JobClient
import JobModel

struct TopPage {
    let format: TextFormat

    /// The lines for a screen of this size, with a message in the last one; without a size, everything.
    func lines(_ view: TopView, now: Timestamp, size: ScreenSize?) -> [String] {
        guard let sample = view.newest else { return [view.message ?? "asking the daemon"] }
        let format = format.within(size.map { max(10, $0.columns) })
        func room(below lines: [String]) -> Int { size.map { max(0, $0.rows - lines.count - 1) } ?? .max }
        var lines: [String]
        switch view.mode {
        case .help: lines = help(format)
        case .output(let job):
            lines = output(view, of: job, room: room(below: [""]), format)
        default:
            lines = [head(sample, view.info), counts(sample), rates(view, isLive: size != nil)]
                .filter { !$0.isEmpty }.map { fit($0, format) }
            // The queues get at most half of the room.
            lines += queues(sample, room: room(below: lines) / 2, format)
            lines += jobs(view, sample, room: room(below: lines), format, now)
        }
        guard let size else { return lines }
        lines = Array(lines.prefix(max(0, size.rows - 1)))
        lines += Array(repeating: "", count: max(0, size.rows - 1 - lines.count))
        let message = (view.message?.sanitized ?? view.prompt).cut(to: size.columns, mark: format.mark)
        return lines + [format.paint(StyledText(message, view.mode == .jobs ? .faint : .heading))]
    }

    private func help(_ format: TextFormat) -> [String] {
        TopView.help.flatMap { String.hanging([$0.1], behind: $0.0.padded(to: 8), within: format.width) }
    }

    private func output(_ view: TopView, of job: Int64, room: Int, _ format: TextFormat) -> [String] {
        let head = fit([StyledText("output of job \(job)", .heading)], format)
        guard let output = view.output, output.job == job else { return [head] }
        let lines = output.text.split(separator: "\n", omittingEmptySubsequences: false).suffix(room + 1)
            .map { fit([StyledText(String($0).sanitized)], format) }
        return [head] + (lines.last == "" ? lines.dropLast() : lines).suffix(room)
    }

    /// As many of the parts as fit into a line.
    private func fit(_ parts: [StyledText], _ format: TextFormat) -> String {
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

    private func head(_ sample: TopSample, _ info: JSON) -> [StyledText] {
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

    private func rates(_ view: TopView, isLive: Bool) -> [StyledText] {
        guard let received = view.rate("bytes", "received"), let submitted = view.rate("totals", "submitted"),
            let finished = view.rate("totals", "succeeded", "failed", "cancelled"),
            let failed = view.rate("totals", "failed")
        else { return isLive ? [StyledText("rates come with the next sample", .faint)] : [] }
        return [
            "\(Quantities.rate(received)) received", "\(Quantities.fixed(finished)) finished/s",
            "\(Quantities.fixed(submitted)) submitted/s",
            StyledText("\(Quantities.fixed(failed)) failed/s", failed > 0 ? .bad : .plain),
        ]
    }

    /// The busiest queues in at most `room` lines, of which the first is empty.
    private func queues(_ sample: TopSample, room: Int, _ format: TextFormat) -> [String] {
        guard room >= 3 else { return [] }
        func counts(_ queue: JSON) -> [Int] { ["running", "queued", "scheduled"].map { queue[$0]?.int ?? 0 } }
        // The sort is stable: equally busy queues keep the daemon's order.
        let sorted = sample.queues.map { ($0, counts($0)) }.sorted { $1.1.lexicographicallyPrecedes($0.1) }.map(\.0)
        let shown = sorted.count <= room - 2 ? sorted : Array(sorted.prefix(max(1, room - 3)))
        var lines = [""] + QueueTable.lines(shown, format)
        if shown.count < sorted.count, lines.count < room {
            lines.append(
                fit([StyledText("\(sorted.count - shown.count) more; see deferctl queue list", .faint)], format))
        }
        return lines
    }

    /// The jobs in at most `room` lines, of which the first is empty: running ones first.
    private func jobs(
        _ view: TopView, _ sample: TopSample, room: Int, _ format: TextFormat, _ now: Timestamp
    ) -> [String] {
        guard room >= 3 else { return [] }
        let jobs = view.jobs
        guard !jobs.isEmpty else {
            let text = view.filter.isEmpty ? "No job runs now." : "No job matches."
            return ["", fit([StyledText(text, .faint)], format)]
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
        return lines + [fit([StyledText("\(hidden); see deferctl list --all", .faint)], format)]
    }
}
