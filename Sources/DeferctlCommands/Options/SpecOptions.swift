import ArgumentParser
import JobModel

/// The options of a submitted job: members of its spec, and how it is followed.
struct SpecOptions: ParsableArguments {
    @Option(help: .value("name", "The queue of the job (default: default)."), completion: LiveCompletion.queues)
    var queue: String?

    @Option(
        parsing: .unconditional,
        help: .value("number", "-1000 to 1000; jobs with a higher priority start first (default: 0)."))
    var priority: Int?

    @Option(help: .value("seconds", "Seconds before the job may start."), transform: seconds) var delay: Double?

    @Option(
        parsing: .singleValue,
        help: .value("ids", "Wait for these jobs, which must succeed; several are separated by commas."),
        completion: LiveCompletion.jobs)
    var after: [WaitedJobs] = []

    @Option(
        parsing: .singleValue,
        help: .value("ids", "Wait for the end of these jobs, whatever it is; several are separated by commas."),
        completion: LiveCompletion.jobs)
    var afterAny: [WaitedJobs] = []

    @Option(help: .value("seconds", "Seconds that one attempt may take (default: no limit)."), transform: seconds)
    var timeout: Double?

    @Option(
        help: .value("seconds", "Seconds from now in which the whole job, with retries, must end (default: no limit)."),
        transform: seconds)
    var deadline: Double?

    @Option(
        help: .value("count", "Retries after the first attempt; 0 for none (default: 4, but 0 for POST and PATCH)."),
        transform: whole(0...Int.max))
    var retries: Int?

    @Option(help: .value("text", "Submit only once: if the same job with this key exists, follow that job."))
    var key: String?

    @Option(
        parsing: .singleValue, help: .value("text", "A tag to list and watch by; may be repeated."),
        completion: LiveCompletion.tags)
    var tag: [String] = []

    @Option(help: .value("text", "The name of the job in lists and progress.")) var label: String?
    @Flag(help: "Print the job's id without waiting for the job.") var detach = false
    @Flag(name: .shortAndLong, help: "Show no progress; failures are still reported.") var quiet = false

    func spec(source: JSONObject) -> JSON {
        let (timeout, retry): (JSON?, JSON?) = (timeout?.json, retries.map { ["max": $0.json] })
        var spec: JSONObject = [
            "source": .object(source), "queue": queue?.json, "priority": priority?.json, "delay": delay?.json,
            "timeout": timeout, "deadline": deadline?.json, "retry": retry, "key": key?.json,
            "tags": tag.isEmpty ? JSON?.none : tag.json, "label": label?.json,
        ]
        guard let wait = Self.wait(for: after, .all) ?? Self.wait(for: afterAny, .settled) else { return .object(spec) }
        // Neither bounds the waiting; in a link, the source's strings could hold expressions.
        (spec["timeout"], spec["retry"]) = (nil, nil)
        let step: JSON = .object(["source": TemplateText.escaped(.object(source)), "timeout": timeout, "retry": retry])
        spec["source"] = wait
        if after.isEmpty {
            spec["then"] = [["both": step]]
        } else if afterAny.isEmpty {
            spec["then"] = [["then": step]]
        } else {
            spec["then"] = [["then": ["source": Self.list(of: afterAny, .settled)]], ["then": step]]
        }
        return .object(spec)
    }

    /// The source that waits for jobs; nil without any.
    private static func wait(for jobs: [WaitedJobs], _ mode: ListMode) -> JSON? {
        let ids = jobs.flatMap(\.ids)
        return ids.count > 1 ? list(of: jobs, mode) : ids.first.map(source)
    }

    private static func list(of jobs: [WaitedJobs], _ mode: ListMode) -> JSON {
        // Their results could be too large together.
        let waits = jobs.flatMap(\.ids).map { id -> JSON in
            ["source": source(id), "then": [["then": ["return": nil]]]]
        }
        return ["type": SourceType.list.rawValue.json, "jobs": .array(waits), "mode": mode.rawValue.json]
    }

    private static func source(_ id: Int64) -> JSON { ["type": SourceType.job.rawValue.json, "job": id.json] }
}

/// Ids of jobs, separated by commas or spaces.
struct WaitedJobs: ExpressibleByArgument {
    let ids: [Int64]

    init?(argument: String) {
        let words = argument.split { $0 == "," || $0.isWhitespace }
        ids = words.compactMap { Int64($0) }.filter { $0 > 0 }
        guard !ids.isEmpty, ids.count == words.count else { return nil }
    }
}

/// The options for the request of a `fetch` or `json`.
struct RequestOptions: ParsableArguments {
    /// The largest body in bytes; the daemon's own limit may be lower.
    static let limit = 64 << 20

    @Option(help: .value("word", "The request's method (default: GET, or POST with --data).")) var method: String?
    @OptionGroup var fields: HeaderOptions

    @Option(
        name: [.customLong("data"), .customShort("d")],
        help: ArgumentHelp(
            "The request's body: text, @FILE for the bytes of a file, or @- for standard input.",
            discussion: "Content-Type is sent only if --header sets it.", valueName: "text"))
    var data: String?

    func source(type: SourceType, url: String) async throws(CommandFailure) -> JSONObject {
        var source: JSONObject = [
            "type": type.rawValue.json, "url": url.json, "method": (method ?? (data == nil ? nil : "POST"))?.json,
            "headers": fields.headers,
        ]
        guard let data else { return source }
        guard data.hasPrefix("@") else {
            source["body"] = .string(data)
            return source
        }
        let bytes = try await InputFile.contents(of: String(data.dropFirst()), limit: Self.limit)
        if let text = String(validating: bytes, as: UTF8.self) {
            source["body"] = .string(text)
        } else {
            source["bodyBase64"] = .string(Base64.encode(bytes))
        }
        return source
    }
}

struct HeaderOptions: ParsableArguments {
    struct Field {
        let name: String
        let value: String
    }

    @Option(
        name: [.customLong("header"), .customShort("H")], parsing: .singleValue,
        help: .value("name: value", "A header field of the request; may be repeated."),
        transform: { text in
            guard let colon = text.firstIndex(of: ":"), colon != text.startIndex else {
                throw ValidationError("a header field must be \"Name: value\".")
            }
            let value = text[text.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
            return Field(name: String(text[..<colon]), value: String(value))
        })
    var header: [Field] = []

    /// The member `headers` of a source; fields with the same name become one, separated by commas.
    var headers: JSON? {
        if header.isEmpty { return nil }
        var object = JSONObject()
        for field in header {
            let known = object.names.first { $0.lowercased() == field.name.lowercased() }
            if let known, let earlier = object[known]?.string {
                object[known] = .string(earlier + ", " + field.value)
            } else {
                object[field.name] = .string(field.value)
            }
        }
        return .object(object)
    }
}
