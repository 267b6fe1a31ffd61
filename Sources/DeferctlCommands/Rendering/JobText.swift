import JobClient
import JobModel

/// A job's title and state, in words for people.
struct JobText {
    let job: JobSnapshot
    let now: Timestamp

    init(_ job: JobSnapshot, now: Timestamp) { (self.job, self.now) = (job, now) }

    /// The label, or else what the source does.
    var title: String {
        job.json.text("label") ?? job.json["source"].map(Self.describe(source:)) ?? "job \(job.id)"
    }

    /// The title where there is little room: of a download its path alone.
    var shortTitle: String {
        let source = job.json["source"]
        guard job.json["label"] == nil, source?["type"] == "download" else { return title }
        return source?.text("path") ?? title
    }

    /// What a source does, in a few words.
    static func describe(source: JSON) -> String {
        let url = source["url"]?.string ?? ""
        let text =
            switch source["type"]?.string {
            case "url":
                (source["method"]?.string).flatMap { $0 == "GET" ? nil : "\($0) \(url)" } ?? url
            case "download": source["path"]?.string.map { "\(url) to \($0)" } ?? url
            case "upload": source["path"]?.string.map { "\($0) to \(url)" } ?? url
            case "json": source["select"]?.string.map { "\(url) \($0)" } ?? url
            case "list": "list of \(source["jobs"]?.array?.count ?? 0) jobs"
            case "each": "each of \(source["in"].map(brief) ?? "?")"
            case "value": "value \(source["value"].map(brief) ?? "null")"
            case "error": "error \(source["kind"]?.string ?? "")"
            case "timer": "timer \(source["seconds"].map(brief) ?? "?") s"
            case "program": program(source)
            case let type?: type
            case nil: "?"
            }
        return text.sanitized
    }

    /// The program and its arguments.
    private static func program(_ source: JSON) -> String {
        var words = Array(ProgramSpec.shown((source["command"]?.array ?? []).map(brief)))
        if let name = source["program"] { words.insert(brief(name), at: 0) }
        words += (source["arguments"]?.array ?? []).map(brief)
        return words.joined(separator: " ").cut(to: 200)
    }

    private static func brief(_ json: JSON) -> String {
        switch json {
        case .string(let text): text
        case .array(let elements): "\(elements.count) values"
        default: json.description.cut(to: 40)
        }
    }

    /// The most useful thing to know beside the state: how far, when next, why not.
    var detail: String {
        switch job.state {
        case "running": return job.progress.map(Self.brief) ?? ""
        case "scheduled":
            let next = job.json.time("notBefore").map { "in " + Quantities.age($0.seconds(since: now)) }
            return [next, errorWord].compactMap(\.self).joined(separator: ", ")
        case "succeeded": return job.result?["size"]?.int.map { Quantities.size(Int64($0)) } ?? ""
        case "failed": return errorWord ?? ""
        default: return ""
        }
    }

    /// How far a job is, in one word.
    static func brief(_ progress: JobProgress) -> String {
        if let fraction = progress.fraction { return Quantities.percent(fraction) }
        return progress.unit == "bytes"
            ? Quantities.size(progress.completed) : "\(progress.completed) \(progress.unit.sanitized)"
    }

    /// The kind of the error, with the status where a server answered.
    var errorWord: String? { job.error.map(Self.word(error:)) }

    static func word(error: JSON) -> String {
        let kind = error["kind"]?.string ?? "failed"
        return (error["http"]?["status"]?.int.map { "\(kind) \($0)" } ?? kind).sanitized
    }

    /// The sentence that says why the job failed.
    var errorSentence: String {
        guard let error = job.error else { return "Job \(job.id) is \(job.state)." }
        let message = error["message"]?.string ?? "It failed without a message."
        return "Job \(job.id) failed (\(Self.word(error: error))): \(message.sanitized)"
    }

    /// The seconds since the job was submitted.
    var age: Double? { job.json.time("createdAt").map { now.seconds(since: $0) } }

    /// The seconds from the start to the end, or to now.
    var runtime: Double? {
        guard let start = job.json.time("startedAt") else { return nil }
        return (job.json.time("finishedAt") ?? now).seconds(since: start)
    }
}

extension JSON {
    /// The time in a member.
    func time(_ member: String) -> Timestamp? { self[member]?.string.flatMap(Timestamp.init(rfc3339:)) }

    /// The text in a member, safe to show.
    func text(_ member: String) -> String? { self[member]?.string?.sanitized }

    /// The whole number in a member, as a cell of a table.
    func number(_ member: String) -> String { self[member]?.int.map(String.init) ?? "" }
}
