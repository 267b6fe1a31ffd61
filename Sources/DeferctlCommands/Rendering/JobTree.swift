import JobClient
import JobModel

/// Draws a job as a tree: its facts, its links with their outcomes, and the children of its lists below them.
struct JobTree {
    let now: Timestamp
    let isUnicode: Bool
    /// The columns there are, or nil for lines of any length.
    let width: Int?

    /// The tree of `family`, line by line.
    func lines(_ family: JobFamily) -> [String] {
        let text = JobText(family.job, now: now)
        let head = "job \(family.job.id)  \(state(text))  \(text.title)"
        let all = [head] + facts(text).map { "  " + $0 } + links(family)
        return all.map { line in width.map { line.cut(to: $0, mark: isUnicode ? "…" : "...") } ?? line }
    }

    private func state(_ text: JobText) -> String {
        let detail = text.detail
        return text.job.state.sanitized + (detail.isEmpty ? "" : " (\(detail))")
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
        let times = moments.compactMap { name, member in text.time(member).map { "\(name) \(Quantities.time($0))" } }
        var facts = [words.joined(separator: ", "), times.joined(separator: ", ") + (times.isEmpty ? "" : " UTC")]
        if let progress = text.job.progress {
            let bar = ProgressBar(width: (width ?? 100) - 2, isUnicode: isUnicode)
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
            let below = branches(mine, hidden: link.number == lastList ? family.hidden : 0, of: family.job)
            return ["  \(mark(link)) \(link.number)  \(link.title)  \(outcome(link))"]
                + (errorLine(link) + below).map { "       " + $0 }
        }
    }

    private func mark(_ link: JobLink) -> String {
        switch link.state {
        case .succeeded: isUnicode ? "✓" : "+"
        case .failed: isUnicode ? "✗" : "x"
        case .running: isUnicode ? "▸" : ">"
        case .skipped: isUnicode ? "·" : "-"
        case .waiting: isUnicode ? "○" : "."
        }
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

    /// The children and theirs as branches, with a last one for those that are not shown.
    private func branches(_ families: [JobFamily], hidden: Int, of parent: JobSnapshot) -> [String] {
        var branches = families.map { family -> [String] in
            let text = JobText(family.job, now: now)
            let error = family.job.state == "failed" ? family.job.error?["message"]?.string?.sanitized : nil
            let head = "\(family.job.id)  \(state(text))  \(text.title)" + (error.map { ": \($0)" } ?? "")
            return [head] + self.branches(family.children, hidden: family.hidden, of: family.job)
        }
        if hidden > 0 { branches.append(["\(hidden) more; see deferctl list --all --parent \(parent.id)"]) }
        let (fork, corner, trunk) = isUnicode ? ("├─ ", "└─ ", "│  ") : ("|- ", "`- ", "|  ")
        return branches.enumerated().flatMap { index, branch in
            let isLast = index == branches.count - 1
            return branch.enumerated().map { number, line in
                (number == 0 ? (isLast ? corner : fork) : (isLast ? "   " : trunk)) + line
            }
        }
    }
}
