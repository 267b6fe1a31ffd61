import JobClient
import JobModel

/// A job's title and state in words.
struct JobText {
    let job: JobSnapshot
    let now: Timestamp
    let progress: JobProgress?
    /// The last line that its program has written.
    let line: String?

    init(_ job: JobSnapshot, progress: JobProgress? = nil, line: String? = nil, now: Timestamp) {
        (self.job, self.now, self.progress, self.line) = (job, now, progress ?? job.progress, line)
    }

    /// The label, or else what the source does.
    var title: String { job.json.text("label") ?? Self.describe(spec: job.json) ?? "job \(job.id)" }

    /// What a job does: of one that waits for others first, what it does after them.
    private static func describe(spec: JSON) -> String? {
        guard let source = spec["source"] else { return nil }
        let waits = (source["jobs"]?.array ?? [spec]).map { $0["source"] }
        let ids = waits.compactMap { $0?["type"] == "job" ? $0?["job"].map(brief) : nil }
        guard ids.count == waits.count, !ids.isEmpty, spec["then"]?.array != nil, let own = spec.ownSource else {
            return describe(source: source)
        }
        let jobs = (ids.count == 1 ? "job " : "jobs ") + ids.joined(separator: ", ").cut(to: 40)
        return "\(describe(source: own)), after \(jobs.sanitized)"
    }

    /// A short title: of a download, only its path.
    var shortTitle: String {
        let source = job.json["source"]
        guard job.json["label"] == nil, source?["type"] == "download" else { return title }
        return source?.text("path") ?? title
    }

    /// The short title, and the last line of a running program.
    var titleAndLine: String { job.state == "running" ? line.map { "\(shortTitle): \($0)" } ?? shortTitle : shortTitle }

    /// What a source does, in a few words.
    static func describe(source: JSON) -> String {
        let url = source["url"]?.string ?? ""
        let path = source["path"]?.string
        let text =
            switch source["type"]?.string {
            case "url": (source["method"]?.string).flatMap { $0 == "GET" ? nil : "\($0) \(url)" } ?? url
            case "download": path.map { "\(url) to \($0)" } ?? url
            case "upload": path.map { "\($0) to \(url)" } ?? url
            case "json": source["select"]?.string.map { "\(url) \($0)" } ?? url
            case "list": "list of \(counted(source["jobs"]?.array?.count ?? 0, "job"))"
            case "each": "each of \(source["in"].map(brief) ?? "?")"
            case "value": "value \(source["value"].map(brief) ?? "null")"
            case "error": "error \(source["kind"]?.string ?? "")"
            case "timer": "timer \(source["seconds"].map(brief) ?? "?") s"
            case "program": program(source)
            case "job": "job \(source["job"].map(brief) ?? "?")"
            case let type?: type
            case nil: "?"
            }
        return text.sanitized
    }

    private static func program(_ source: JSON) -> String {
        var words = (source["command"]?.array ?? []).map(brief)
        if let name = source["program"] { words.insert(brief(name), at: 0) }
        words += (source["arguments"]?.array ?? []).map(brief)
        return words.joined(separator: " ").cut(to: 200)
    }

    private static func brief(_ json: JSON) -> String {
        switch json {
        case .string(let text): text
        case .array(let elements): counted(elements.count, "value")
        default: json.description.cut(to: 40)
        }
    }

    private static func counted(_ count: Int, _ noun: String) -> String { "\(count) \(noun)\(count == 1 ? "" : "s")" }

    /// The most useful detail of the state: the progress, what it waits for, the size of the result, or the error.
    var detail: String {
        switch job.state {
        case "running": return progress?.brief ?? waitingFor ?? ""
        case "scheduled":
            let next = job.json.time("notBefore").map { "in " + Quantities.age($0.seconds(since: now)) }
            return errorWord.map { ["retry", next, "after \($0)"].compactMap(\.self).joined(separator: " ") }
                ?? next ?? waitingFor ?? ""
        case "succeeded":
            if failedFinally != nil { return "its finally failed" }
            return job.result?["size"]?.int.map(Quantities.size) ?? ""
        case "failed": return errorWord ?? ""
        default: return waitingFor ?? ""
        }
    }

    var waitingFor: String? {
        let queue = job.json.text("queue") ?? "?"
        switch job.json["waitingFor"]?.string {
        case "slot": return "for a slot of queue \(queue)"
        case "suspended": return "queue \(queue) is suspended"
        case "rate": return "for the start rate of queue \(queue)"
        case "host": return "for \(host ?? "its host")"
        case "room": return "for room on the disk"
        case "job":
            let target = job.json["link"] == 0 ? job.json["source"]?["job"].map(Self.brief) : nil
            return target.map { "for job \($0)" } ?? "for another job"
        case "children": return "for its children"
        case "time", nil: return nil
        case "node": return "for the node \(job.json.text("node") ?? "?")"
        case "release": return "until it is released"
        case let word?: return "for \(word.sanitized)"
        }
    }

    private var host: String? {
        guard let url = job.json["url"]?.string ?? job.json["source"]?["url"]?.string, !url.contains("{{") else {
            return nil
        }
        return url.split(separator: "/").dropFirst().first.map { String($0).sanitized }
    }

    /// The error of a `finally` link, which does not make its job fail.
    private var failedFinally: JSON? {
        let links = job.json["then"]?.array ?? []
        return job.json["outcomes"]?.array?.last { outcome in
            guard outcome["ok"]?.bool == false, let link = outcome["link"]?.int, links.indices.contains(link - 1) else {
                return false
            }
            return links[link - 1]["finally"] != nil
        }?["error"]
    }

    /// Says that a `finally` link of the finished job failed.
    var finallySentence: String? {
        failedFinally.map {
            "The finally link of job \(job.id) failed (\(Self.word(error: $0))): \($0.text("message") ?? "")"
        }
    }

    var stateAndDetail: String { job.state.sanitized + (detail.isEmpty ? "" : " (\(detail))") }

    /// The kind of the error, with the status that a server answered.
    var errorWord: String? { job.error.map(Self.word(error:)) }

    static func word(error: JSON) -> String {
        let kind = error["kind"]?.string ?? "failed"
        return (error["http"]?["status"]?.int.map { "\(kind) \($0)" } ?? kind).sanitized
    }

    var errorSentence: String {
        guard let error = job.error else { return "Job \(job.id) is \(job.state)." }
        return "Job \(job.id) failed (\(Self.word(error: error))): \(Self.message(of: error))"
    }

    /// The message of an error, with the beginning of the server's answer, unless that is a page for browsers.
    static func message(of error: JSON) -> String {
        let message = error.text("message") ?? "It failed without a message."
        guard let http = error["http"], http["encoding"] == nil, let answer = http["body"]?.string,
            let first = answer.first(where: { !$0.isWhitespace }), first != "<"
        else { return message }
        return "\(message) It said: \(answer.shortened(to: 200).sanitized)"
    }

    private static let shownLines = 10

    /// The last lines that its failed program wrote.
    var lastLines: [String] { Self.lastLines(job.error?["program"]?["output"]?.string ?? "") }

    static func lastLines(_ text: String) -> [String] {
        text.split(omittingEmptySubsequences: false, whereSeparator: \.endsLine).map(String.init)
            .dropLast(text.last?.endsLine ?? true ? 1 : 0).suffix(shownLines)
    }

    var age: Double? { job.json.time("createdAt").map { now.seconds(since: $0) } }

    /// The seconds from its start to its end, or to now.
    var runtime: Double? {
        job.json.time("startedAt").map { (job.json.time("finishedAt") ?? now).seconds(since: $0) }
    }
}

extension JSON {
    func time(_ member: String) -> Timestamp? { self[member]?.string.flatMap(Timestamp.init(rfc3339:)) }

    /// The text in a member, safe for a terminal.
    func text(_ member: String) -> String? { self[member]?.string?.sanitized }

    func number(_ member: String) -> String { self[member]?.int.map(String.init) ?? "" }
}
