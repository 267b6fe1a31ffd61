import JobClient
import JobModel

/// Draws a job as a tree: its facts, its links with their outcomes, and the children of its lists below them.
struct JobTree {
    let now: Timestamp
    let format: TextFormat

    /// The tree of `family`, line by line.
    func lines(_ family: JobFamily) -> [String] {
        let text = JobText(family.job, now: now)
        let head = line([StyledText("job \(family.job.id)"), state(text), StyledText(text.title)], cut: 2)
        return [head] + facts(text).flatMap { indented($0, by: 2) } + links(family)
    }

    private func state(_ text: JobText) -> StyledText {
        let detail = text.detail
        return StyledText(
            text.job.state.sanitized + (detail.isEmpty ? "" : " (\(detail))"), TextStyle(state: text.job.state))
    }

    /// The parts in one line behind `margin`, of which the one at `cut` is cut inside where there is too little room.
    private func line(_ parts: [StyledText], cut: Int, margin: String = "") -> String {
        var parts = parts
        if let width = format.width {
            let others = parts.enumerated().reduce(margin.columns + 2 * (parts.count - 1)) { sum, part in
                part.offset == cut ? sum : sum + part.element.text.columns
            }
            parts[cut].text = parts[cut].text.cutInside(to: max(8, width - others), mark: format.mark)
            let plain = margin + parts.map(\.text).joined(separator: "  ")
            if plain.columns > width { return plain.cut(to: width, mark: format.mark) }
        }
        return margin + parts.map(format.palette.paint).joined(separator: "  ")
    }

    /// The text with `count` spaces before it, in several lines where there is too little room: an error is never cut.
    private func indented(_ text: String, by count: Int, _ style: TextStyle = .plain) -> [String] {
        let lines = format.width.map { text.wrapped(to: max(8, $0 - count)) } ?? [text]
        return lines.map { String(repeating: " ", count: count) + format.palette.paint($0, style) }
    }

    /// Who, where, when and how far.
    private func facts(_ text: JobText) -> [String] {
        let json = text.job.json
        var words = ["queue", "priority", "owner", "parent", "key"].compactMap { member -> String? in
            guard let value = json[member], !(member == "priority" && value == 0) else { return nil }
            return "\(member) \((value.string ?? value.description).sanitized)"
        }
        let tags = json["tags"]?.array?.compactMap { $0.string?.sanitized } ?? []
        if !tags.isEmpty { words.append("tags " + tags.joined(separator: " ")) }
        let moments = [
            ("submitted", "createdAt"), ("not before", "notBefore"), ("started", "startedAt"),
            ("finished", "finishedAt"),
        ]
        let times = moments.compactMap { name, member in json.time(member).map { "\(name) \(Quantities.time($0))" } }
        var facts = [words.joined(separator: ", "), times.joined(separator: ", ") + (times.isEmpty ? "" : " UTC")]
        if let progress = text.job.progress {
            let bar = ProgressBar(width: (format.width ?? 100) - 2, isUnicode: format.isUnicode)
            facts.append(bar.line(title: "link \(json["link"]?.int ?? 0)", progress: progress))
        }
        return facts.filter { !$0.isEmpty }
    }

    /// The source and the links, each with its children.
    private func links(_ family: JobFamily) -> [String] {
        let links = JobLink.all(of: family.job)
        let owners = JobLink.owners(of: family.children.map(\.job), in: links)
        let lastList = links.last(where: \.makesChildren)?.number ?? 0
        return links.flatMap { link -> [String] in
            let mine = zip(family.children, owners).filter { $0.1 == link.number }.map(\.0)
            let below = branches(
                mine, hidden: link.number == lastList ? family.hidden : 0, of: family.job, margin: "       ")
            let head = line(
                [
                    StyledText("\(mark(link)) \(link.number)", link.state.style), StyledText(link.title),
                    StyledText(outcome(link), link.state.style),
                ], cut: 1, margin: "  ")
            return [head] + errorLine(link).flatMap { indented($0, by: 7, .bad) } + below
        }
    }

    private func mark(_ link: JobLink) -> String {
        let (unicode, ascii) = link.state.marks
        return format.isUnicode ? unicode : ascii
    }

    private func outcome(_ link: JobLink) -> String {
        var words = [link.state.rawValue]
        if let seconds = link.seconds(now: now) { words.append(Quantities.span(seconds)) }
        if link.attempts > 1 { words.append("\(link.attempts) attempts") }
        return words.joined(separator: ", ")
    }

    private func errorLine(_ link: JobLink) -> [String] {
        link.error.map { ["\(JobText.word(error: $0)): \(($0["message"]?.string ?? "").sanitized)"] } ?? []
    }

    /// The children and theirs as branches behind `margin`, with a last one for those that are not shown.
    private func branches(
        _ families: [JobFamily], hidden: Int, of parent: JobSnapshot, margin: String
    ) -> [String] {
        let (fork, corner, trunk) = format.isUnicode ? ("├─ ", "└─ ", "│  ") : ("|- ", "`- ", "|  ")
        var lines: [String] = []
        for (index, family) in families.enumerated() {
            let isLast = hidden == 0 && index == families.count - 1
            let text = JobText(family.job, now: now)
            let error = family.job.state == "failed" ? family.job.error?["message"]?.string?.sanitized : nil
            let title = text.title + (error.map { ": \($0)" } ?? "")
            lines.append(
                line(
                    [StyledText(String(family.job.id)), state(text), StyledText(title)], cut: 2,
                    margin: margin + (isLast ? corner : fork)))
            lines += branches(
                family.children, hidden: family.hidden, of: family.job, margin: margin + (isLast ? "   " : trunk))
        }
        if hidden > 0 {
            let more = "\(hidden) more; see deferctl list --all --parent \(parent.id)"
            lines.append(line([StyledText(more)], cut: 0, margin: margin + corner))
        }
        return lines
    }
}

extension JobLink.State {
    fileprivate var marks: (unicode: String, ascii: String) {
        switch self {
        case .succeeded: ("✓", "+")
        case .failed: ("✗", "x")
        case .running: ("▸", ">")
        case .skipped: ("·", "-")
        case .waiting: ("○", ".")
        }
    }

    fileprivate var style: TextStyle { self == .skipped ? .faint : TextStyle(state: rawValue) }
}
