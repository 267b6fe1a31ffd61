import JobClient
import JobModel

/// A job as a tree: its facts, its links with their outcomes, and the children of its lists.
struct JobTree {
    let now: Timestamp
    let format: TextFormat

    /// The last lines of its program follow, of a failed job or as `output` has them.
    func lines(_ family: JobFamily, output: [String] = []) -> [String] {
        let text = JobText(family.job, now: now)
        let head = line(["job \(family.job.id)", state(text), StyledText(text.title)], cut: 2)
        let output = (output.isEmpty ? text.lastLines : output).map { "    " + $0.sanitized }
        return [head] + facts(text).flatMap { $0.indented(by: 2, within: format.width) } + links(family)
            + (output.isEmpty ? [] : ["  its program wrote at last:"] + output)
    }

    private func state(_ text: JobText) -> StyledText {
        StyledText(text.stateAndDetail, TextStyle(state: text.job.state))
    }

    /// The parts in one line; the part at index `cut` is cut in the middle if there is too little room.
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
        return margin + parts.map(format.paint).joined(separator: "  ")
    }

    private func facts(_ text: JobText) -> [String] {
        let json = text.job.json
        var words = ["queue", "priority", "owner", "parent", "key", "keyUntil", "notify", "node"].compactMap {
            member -> String? in
            guard let value = json[member], ![0, false, "removed"].contains(value) else { return nil }
            if member == "owner" { return "owner \(Accounts.name(value))" }
            return "\(member) \((value.string ?? value.description).sanitized)"
        }
        let tags = json["tags"]?.array?.compactMap { $0.string?.sanitized } ?? []
        if !tags.isEmpty { words.append("tags " + tags.joined(separator: " ")) }
        let moments = [
            ("submitted", "createdAt"), ("not before", "notBefore"), ("started", "startedAt"),
            ("finished", "finishedAt"),
        ]
        if let restarts = json["restarts"]?.int, restarts > 0 {
            words.append("restarted " + (restarts == 1 ? "once" : "\(restarts) times"))
        }
        let times = moments.compactMap { name, member in json.time(member).map { "\(name) \(Quantities.time($0))" } }
        let zone = json.time("createdAt").map { " \(Quantities.zone($0))" } ?? ""
        var facts = [words.joined(separator: ", "), times.joined(separator: ", ") + zone]
        if let progress = text.progress {
            let narrower = format.within((format.width ?? 100) - 2)
            facts.append(narrower.line(progress, title: "link \(json["link"]?.int ?? 0)"))
        }
        return facts.filter { !$0.isEmpty }
    }

    private func links(_ family: JobFamily) -> [String] {
        let links = JobLink.all(of: family.job)
        let owners = JobLink.owners(of: family.children.map(\.job), in: links)
        let lastList = links.last(where: \.makesChildren)?.number ?? 0
        return links.flatMap { link -> [String] in
            let mine = zip(family.children, owners).filter { $0.1 == link.number }.map(\.0)
            let hidden = link.number == lastList ? family.hidden : 0
            let style = TextStyle(state: link.state.rawValue)
            let head = line(
                [
                    StyledText("\(mark(link.state)) \(link.number)", style), StyledText(link.title),
                    StyledText(outcome(link), style),
                ], cut: 1, margin: "  ")
            let error = link.error.map { "\(JobText.word(error: $0)): \(JobText.message(of: $0))" }
            // An error is never cut.
            let errorLines = error?.indented(by: 7, within: format.width).map { line -> String in
                line.prefix(7) + format.paint(StyledText(String(line.dropFirst(7)), .bad))
            }
            let url = link.outcome.text("url").flatMap { link.title.contains($0) ? nil : "asked for \($0)" }
            return [head] + (url?.indented(by: 7, within: format.width) ?? []) + (errorLines ?? [])
                + branches(mine, hidden: hidden, of: family.job, margin: "       ")
        }
    }

    private func mark(_ state: JobLink.State) -> String {
        switch state {
        case .succeeded: format.isUnicode ? "✓" : "+"
        case .failed: format.isUnicode ? "✗" : "x"
        case .running: format.isUnicode ? "▸" : ">"
        case .skipped: format.isUnicode ? "·" : "-"
        case .waiting: format.isUnicode ? "○" : "."
        }
    }

    private func outcome(_ link: JobLink) -> String {
        var words = [link.state.rawValue]
        if let seconds = link.seconds(now: now) { words.append(Quantities.span(seconds)) }
        if link.attempts > 1 { words.append("\(link.attempts) attempts") }
        return words.joined(separator: ", ")
    }

    /// The children and their children as branches, with a last one for children that are not shown.
    private func branches(_ families: [JobFamily], hidden: Int, of parent: JobSnapshot, margin: String) -> [String] {
        let (fork, corner, trunk) = format.isUnicode ? ("├─ ", "└─ ", "│  ") : ("|- ", "`- ", "|  ")
        var lines: [String] = []
        for (index, family) in families.enumerated() {
            let isLast = hidden == 0 && index == families.count - 1
            let text = JobText(family.job, now: now)
            let error = family.job.state == "failed" ? family.job.error?["message"]?.string?.sanitized : nil
            let title = text.title + (error.map { ": \($0)" } ?? "")
            lines.append(
                line(
                    ["\(family.job.id)", state(text), StyledText(title)], cut: 2,
                    margin: margin + (isLast ? corner : fork)))
            lines += branches(
                family.children, hidden: family.hidden, of: family.job, margin: margin + (isLast ? "   " : trunk))
        }
        if hidden > 0 {
            let more: StyledText = "\(hidden) more; see deferctl list --all --parent \(parent.id)"
            lines.append(line([more], cut: 0, margin: margin + corner))
        }
        return lines
    }
}

/// A link of a job with its outcome. Number 0 is the source.
struct JobLink {
    enum State: String {
        case waiting, running, succeeded, failed, skipped
    }

    let number: Int
    let title: String
    let makesChildren: Bool
    var state = State.waiting
    /// Its outcome, or as much of it as there is.
    var outcome: JSON = [:]

    var attempts: Int { outcome["attempts"]?.int ?? 0 }
    var error: JSON? { outcome["error"] }

    static func all(of job: JobSnapshot) -> [JobLink] {
        let json = job.json
        var links = ([json] + (json["then"]?.array ?? [])).enumerated().map { JobLink(number: $0, $1) }
        for outcome in json["outcomes"]?.array ?? [] {
            guard let number = outcome["link"]?.int, links.indices.contains(number) else { continue }
            links[number].state = outcome["ok"]?.bool == true ? .succeeded : .failed
            links[number].outcome = outcome
        }
        let present = json["link"]?.int ?? 0
        for index in links.indices where links[index].state == .waiting {
            if job.isFinished || index < present {
                links[index].state = .skipped
            } else if index == present, job.state == "running" {
                let start = index == 0 ? json["startedAt"] : links[index - 1].outcome["finishedAt"]
                links[index].state = .running
                links[index].outcome = .object(["attempts": json["attempt"], "url": json["url"], "startedAt": start])
            } else if index == present, job.state == "scheduled" {
                // It waits for its next attempt; the error is that of the last one.
                links[index].outcome = .object(["attempts": json["attempt"], "url": json["url"], "error": job.error])
            }
        }
        return links
    }

    /// Link 0 has the source of `link`, which is the job.
    private init(number: Int, _ link: JSON) {
        let kinds = link["on"]?.array.map { " on " + $0.compactMap(\.string).joined(separator: ", ") } ?? ""
        let steps: [(String, JSON)] =
            number == 0
            ? [("", link)]
            : ["then", "fail", "both", "finally"].compactMap { verb in
                link[verb].map { ("\(verb)\(verb == "fail" ? kinds : ""): ", $0) }
            }
        self.number = number
        title = steps.map { $0 + Self.describe(step: $1) }.joined(separator: "; ").sanitized
        makesChildren = steps.contains { _, step in
            (step["source"]?["type"]?.string).flatMap(SourceType.init)?.hasChildren ?? false
        }
    }

    private static func describe(step: JSON) -> String {
        if let source = step["source"] {
            let type = source["type"]?.string ?? "?"
            let what = JobText.describe(source: source)
            return what.hasPrefix(type) ? what : "\(type) \(what)"
        }
        if let value = step["return"] { return "return \(value.description.cut(to: 40))" }
        return step["throw"].map { "throw \($0["kind"]?.string ?? $0["message"]?.string ?? "")" } ?? "?"
    }

    /// How long it took, or has taken so far, in seconds.
    func seconds(now: Timestamp) -> Double? {
        outcome.time("startedAt").map { (outcome.time("finishedAt") ?? now).seconds(since: $0) }
    }

    /// The link that each of `children` belongs to.
    ///
    /// A job object does not name it: it is the last link with children that had started when the child was made.
    static func owners(of children: [JobSnapshot], in links: [JobLink]) -> [Int] {
        let lists = links.filter(\.makesChildren)
        return children.map { child in
            let made = child.json.time("createdAt")
            let started = lists.filter { list in
                guard let made, let start = list.outcome.time("startedAt") else { return false }
                return start <= made
            }
            return (started.last ?? lists.first)?.number ?? 0
        }
    }
}
