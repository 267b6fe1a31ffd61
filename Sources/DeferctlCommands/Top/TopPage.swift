import JobClient
import JobModel

/// Draws what `deferctl top` shows.
struct TopPage {
    /// How it looks, whatever the size of the screen.
    let format: TextFormat

    /// The lines of a screen of this size; without a size all there is to show. `message` stands in the last line.
    func lines(
        _ history: TopHistory, info: JSON, message: String, tick: Int = 0, now: Timestamp, size: ScreenSize?
    ) -> [String] {
        guard let sample = history.newest else { return [message] }
        let width = size.map { max(10, $0.columns) }
        var lines = [head(sample, info), counts(sample), rates(history.rates, isLive: size != nil)].filter {
            !$0.isEmpty
        }
        .map { fit($0, width) }
        // The last line is the message's; half of what is left is for the queues at most.
        let room = size.map { max(0, $0.rows - lines.count - 1) } ?? .max
        lines += queues(sample, room: room / 2, width: width)
        lines += jobs(sample, room: size.map { max(0, $0.rows - lines.count - 1) } ?? .max, width: width, tick, now)
        guard let size else { return lines }
        lines = Array(lines.prefix(max(0, size.rows - 1)))
        lines += Array(repeating: "", count: max(0, size.rows - 1 - lines.count))
        return lines + [format.palette.paint(message.cut(to: size.columns, mark: format.mark), .faint)]
    }

    /// The parts of a line, as many as there is room for.
    private func fit(_ parts: [StyledText], _ width: Int?) -> String {
        var (plain, line) = ("", "")
        for part in parts {
            let separator = plain.isEmpty ? "" : "  "
            if let width, (plain + separator + part.text).columns > width {
                return plain.isEmpty ? part.text.cut(to: width, mark: format.mark) : line
            }
            plain += separator + part.text
            line += separator + format.palette.paint(part)
        }
        return line
    }

    private func head(_ sample: TopSample, _ info: JSON) -> [StyledText] {
        let name = [info["name"]?.string, info["version"]?.string].compactMap { $0?.sanitized }.joined(separator: " ")
        var parts = [StyledText(name.isEmpty ? "deferd" : name, .heading)]
        if let uptime = sample.uptime { parts.append(StyledText("up \(Quantities.span(uptime))")) }
        for (member, word) in [("connections", "connection"), ("watches", "watch")] {
            guard let count = sample.stats[member]?.int else { continue }
            parts.append(StyledText("\(count) \(word)\(count == 1 ? "" : word == "watch" ? "es" : "s")"))
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
        guard let rates else { return isLive ? [StyledText("rates come with the next look", .faint)] : [] }
        return [
            StyledText("\(Quantities.rate(rates.received)) received"),
            StyledText("\(Quantities.fixed(rates.finished)) finished/s"),
            StyledText("\(Quantities.fixed(rates.submitted)) submitted/s"),
            StyledText("\(Quantities.fixed(rates.failed)) failed/s", rates.failed > 0 ? .bad : .plain),
        ]
    }

    /// The busiest queues in at most `room` lines, with an empty one before them.
    private func queues(_ sample: TopSample, room: Int, width: Int?) -> [String] {
        guard room >= 3 else { return [] }
        func counts(_ queue: JSON) -> [Int] { ["running", "queued", "scheduled"].map { queue[$0]?.int ?? 0 } }
        // The sort is stable: of equally busy ones the order is the daemon's.
        let sorted = sample.queues.map { ($0, counts($0)) }.sorted { $1.1.lexicographicallyPrecedes($0.1) }.map(\.0)
        let shown = sorted.count <= room - 2 ? sorted : Array(sorted.prefix(max(1, room - 3)))
        var lines = [""] + QueueTable.lines(shown, format.within(width))
        if shown.count < sorted.count, lines.count < room {
            lines.append(fit([StyledText("\(sorted.count - shown.count) more; see deferctl queues", .faint)], width))
        }
        return lines
    }

    /// The jobs that run in at most `room` lines, with an empty one before them.
    private func jobs(_ sample: TopSample, room: Int, width: Int?, _ tick: Int, _ now: Timestamp) -> [String] {
        guard room >= 3 else { return [] }
        // The daemon counts children, too, which its list leaves out.
        let counted = max(sample.jobs.count, sample.stats["jobs"]?["running"]?.int ?? 0)
        let running = sample.isComplete ? sample.jobs.count : counted
        guard counted > 0 else { return ["", fit([StyledText("No job runs now.", .faint)], width)] }
        let count = running <= room - 2 ? running : room - 3
        let shown = sample.jobs.prefix(max(1, count))
        let cells = ProgressCells(isUnicode: format.isUnicode, screenWidth: width ?? 80)
        var table = Table(
            [.number("JOB"), .number("OWNER", rank: 7)] + cells.columns + [
                .number("TIME", rank: 6), Table.Column("QUEUE", cut: .end, least: 7, rank: 8),
                Table.Column("WHAT", cut: .middle, least: 12),
            ])
        for job in shown {
            let text = JobText(job, now: now)
            table.append(
                [StyledText(String(job.id)), StyledText(job.json.number("owner"))]
                    + cells.cells(job, progress: job.progress, tick: tick, now: now) + [
                        StyledText(text.runtime.map(Quantities.age) ?? ""),
                        StyledText(job.json.text("queue") ?? ""), StyledText(text.shortTitle),
                    ])
        }
        var lines = [""] + table.lines(format.within(width))
        // Between the count and the list jobs come and go.
        let hidden = running - shown.count
        if hidden > 0, lines.count < room, shown.count >= count || shown.count == TopSample.mostJobs {
            let many = sample.isComplete ? "\(hidden)" : "up to \(hidden)"
            lines.append(fit([StyledText("\(many) more; see deferctl list --state running --all", .faint)], width))
        }
        return lines
    }
}
