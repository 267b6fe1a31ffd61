import JobClient
import JobModel

struct TopPage {
    let format: TextFormat

    /// The lines for a screen of this size, with `message` in the last one; without a size, everything.
    func lines(
        _ history: TopHistory, info: JSON, message: String, tick: Int = 0, now: Timestamp, size: ScreenSize?
    ) -> [String] {
        guard let sample = history.newest else { return [message] }
        let format = format.within(size.map { max(10, $0.columns) })
        var lines = [head(sample, info), counts(sample), rates(history.rates, isLive: size != nil)]
            .filter { !$0.isEmpty }.map { fit($0, format) }
        // The queues get at most half of the room.
        func room() -> Int { size.map { max(0, $0.rows - lines.count - 1) } ?? .max }
        lines += queues(sample, room: room() / 2, format)
        lines += jobs(sample, room: room(), format, tick, now)
        guard let size else { return lines }
        lines = Array(lines.prefix(max(0, size.rows - 1)))
        lines += Array(repeating: "", count: max(0, size.rows - 1 - lines.count))
        return lines + [format.paint(StyledText(message.cut(to: size.columns, mark: format.mark), .faint))]
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
        ["running", "queued", "scheduled", "succeeded", "failed", "cancelled"].map { state in
            let count = sample.stats["jobs"]?[state]?.int ?? 0
            return StyledText("\(count) \(state)", count == 0 ? .faint : TextStyle(state: state))
        }
    }

    private func rates(_ rates: TopRates?, isLive: Bool) -> [StyledText] {
        guard let rates else { return isLive ? [StyledText("rates come with the next sample", .faint)] : [] }
        return [
            "\(Quantities.rate(rates.received)) received", "\(Quantities.fixed(rates.finished)) finished/s",
            "\(Quantities.fixed(rates.submitted)) submitted/s",
            StyledText("\(Quantities.fixed(rates.failed)) failed/s", rates.failed > 0 ? .bad : .plain),
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
            lines.append(fit([StyledText("\(sorted.count - shown.count) more; see deferctl queues", .faint)], format))
        }
        return lines
    }

    /// The running jobs in at most `room` lines, of which the first is empty.
    private func jobs(
        _ sample: TopSample, room: Int, _ format: TextFormat, _ tick: Int, _ now: Timestamp
    ) -> [String] {
        guard room >= 3 else { return [] }
        // The daemon also counts children, which its list leaves out.
        let counted = max(sample.jobs.count, sample.stats["jobs"]?["running"]?.int ?? 0)
        let running = sample.isComplete ? sample.jobs.count : counted
        guard counted > 0 else { return ["", fit([StyledText("No job runs now.", .faint)], format)] }
        let count = running <= room - 2 ? running : room - 3
        let shown = sample.jobs.prefix(max(1, count))
        let table = Table<JobText>(
            [.job, .number("OWNER", rank: 7) { $0.job.json.number("owner") }]
                + Table.Column.progress(format, tick: tick) + [
                    .number("TIME", rank: 6) { $0.runtime.map(Quantities.age) ?? "" }, .queue(rank: 8),
                    .init("WHAT", cut: .middle, least: 12, text: \.titleAndLine),
                ])
        var lines = [""] + table.lines(shown.map { JobText($0, line: sample.lines[$0.id], now: now) }, format)
        // Jobs come and go between the count and the list.
        let hidden = running - shown.count
        if hidden > 0, lines.count < room, shown.count >= count || shown.count == TopSample.mostJobs {
            let many = sample.isComplete ? "\(hidden)" : "up to \(hidden)"
            lines.append(fit([StyledText("\(many) more; see deferctl list --state running --all", .faint)], format))
        }
        return lines
    }
}
