import JobClient
import JobModel

/// A link of a job as it is shown: what it does and how it ended. Number 0 is the source.
struct JobLink {
    enum State: String {
        case waiting, running, succeeded, failed, skipped
    }

    let number: Int
    let title: String
    /// Whether its source makes child jobs.
    let makesChildren: Bool
    var state = State.waiting
    var startedAt: Timestamp?
    var finishedAt: Timestamp?
    var attempts = 0
    var error: JSON?

    /// The source and all links of `job`, in order.
    static func all(of job: JobSnapshot) -> [JobLink] {
        let json = job.json
        var links = [JobLink(source: json["source"] ?? .null)]
        for link in json["then"]?.array ?? [] { links.append(JobLink(number: links.count, link: link)) }
        for outcome in json["outcomes"]?.array ?? [] {
            guard let number = outcome["link"]?.int, links.indices.contains(number) else { continue }
            links[number].state = outcome["ok"]?.bool == true ? .succeeded : .failed
            links[number].error = outcome["error"]
            links[number].attempts = outcome["attempts"]?.int ?? 1
            links[number].startedAt = outcome.time("startedAt")
            links[number].finishedAt = outcome.time("finishedAt")
        }
        let present = json["link"]?.int ?? 0
        for index in links.indices where links[index].state == .waiting {
            if job.isFinished || index < present {
                links[index].state = .skipped
            } else if index == present, job.state == "running" {
                links[index].state = .running
                links[index].attempts = json["attempt"]?.int ?? 1
                links[index].startedAt = index == 0 ? json.time("startedAt") : links[index - 1].finishedAt
            } else if index == present, job.state == "scheduled" {
                // It waits for its next attempt, and the error is that of the last.
                links[index].attempts = json["attempt"]?.int ?? 0
                links[index].error = job.error
            }
        }
        return links
    }

    private init(number: Int, link: JSON) {
        let verbs = ["then", "fail", "both", "finally"].filter { link[$0] != nil }
        let kinds = link["on"]?.array?.compactMap(\.string).joined(separator: ", ")
        let steps = verbs.map { verb in
            let on = verb == "fail" ? kinds.map { " on \($0)" } ?? "" : ""
            return "\(verb)\(on): \(Self.describe(step: link[verb] ?? .null))"
        }
        self.number = number
        title = steps.joined(separator: "; ").sanitized
        makesChildren = verbs.contains { Self.makesChildren(link[$0] ?? .null) }
    }

    private init(source: JSON) {
        let step: JSON = ["source": source]
        number = 0
        title = Self.describe(step: step)
        makesChildren = Self.makesChildren(step)
    }

    private static func describe(step: JSON) -> String {
        if let source = step["source"] {
            let type = source["type"]?.string ?? "?"
            let what = JobText.describe(source: source)
            return (what.hasPrefix(type) ? what : "\(type) \(what)").sanitized
        }
        if let value = step["return"] { return "return \(value.description.cut(to: 40))".sanitized }
        if let error = step["throw"] {
            return "throw \(error["kind"]?.string ?? error["message"]?.string ?? "")".sanitized
        }
        return "?"
    }

    private static func makesChildren(_ step: JSON) -> Bool {
        (step["source"]?["type"]?.string).flatMap(SourceType.init)?.hasChildren ?? false
    }

    /// The seconds it took, or takes so far.
    func seconds(now: Timestamp) -> Double? {
        startedAt.map { (finishedAt ?? now).seconds(since: $0) }
    }

    /// Which link each of `children` belongs to.
    ///
    /// A job object does not say so; it is the last link with children that had started when the child was made.
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
