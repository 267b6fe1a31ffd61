import JobClient
import JobModel

/// A link of a job with its outcome. Number 0 is the source.
struct JobLink {
    enum State: String {
        case waiting, running, succeeded, failed, skipped
    }

    let number: Int
    let title: String
    let makesChildren: Bool
    var state = State.waiting
    var startedAt: Timestamp?
    var finishedAt: Timestamp?
    var attempts = 0
    var error: JSON?
    /// The URL that it asked for last.
    var url: String?

    static func all(of job: JobSnapshot) -> [JobLink] {
        let json = job.json
        var links = [JobLink(number: 0, steps: [(nil, ["source": json["source"] ?? .null])])]
        for link in json["then"]?.array ?? [] { links.append(JobLink(number: links.count, link: link)) }
        for outcome in json["outcomes"]?.array ?? [] {
            guard let number = outcome["link"]?.int, links.indices.contains(number) else { continue }
            links[number].state = outcome["ok"]?.bool == true ? .succeeded : .failed
            links[number].error = outcome["error"]
            links[number].url = outcome.text("url")
            links[number].attempts = outcome["attempts"]?.int ?? 1
            links[number].startedAt = outcome.time("startedAt")
            links[number].finishedAt = outcome.time("finishedAt")
        }
        let present = json["link"]?.int ?? 0
        if links.indices.contains(present), let url = json.text("url") { links[present].url = url }
        for index in links.indices where links[index].state == .waiting {
            if job.isFinished || index < present {
                links[index].state = .skipped
            } else if index == present, job.state == "running" {
                links[index].state = .running
                links[index].attempts = json["attempt"]?.int ?? 1
                links[index].startedAt = index == 0 ? json.time("startedAt") : links[index - 1].finishedAt
            } else if index == present, job.state == "scheduled" {
                // It waits for its next attempt; the error is that of the last one.
                links[index].attempts = json["attempt"]?.int ?? 0
                links[index].error = job.error
            }
        }
        return links
    }

    private init(number: Int, link: JSON) {
        let kinds = link["on"]?.array?.compactMap(\.string).joined(separator: ", ")
        self.init(
            number: number,
            steps: ["then", "fail", "both", "finally"].compactMap { verb in
                link[verb].map { (verb + (verb == "fail" ? kinds.map { " on \($0)" } ?? "" : ""), $0) }
            })
    }

    private init(number: Int, steps: [(verb: String?, step: JSON)]) {
        self.number = number
        title =
            steps.map { verb, step in (verb.map { "\($0): " } ?? "") + Self.describe(step: step) }
            .joined(separator: "; ").sanitized
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
    func seconds(now: Timestamp) -> Double? { startedAt.map { (finishedAt ?? now).seconds(since: $0) } }

    /// The link that each of `children` belongs to.
    ///
    /// A job object does not name it: it is the last link with children that had started when the child was made.
    static func owners(of children: [JobSnapshot], in links: [JobLink]) -> [Int] {
        let lists = links.filter(\.makesChildren)
        return children.map { child in
            let made = child.json.time("createdAt")
            let started = lists.filter { list in
                guard let made, let start = list.startedAt else { return false }
                return start <= made
            }
            return (started.last ?? lists.first)?.number ?? 0
        }
    }
}
