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

    @Option(help: .value("duration", "The time before the job may start: 90, 10m, 1h30m, 2d."))
    var delay: WrittenDuration?

    @Option(
        help: .value("time", "When the job may start: 06:00, \"tomorrow 9:00\", monday, \"2030-12-02 08:30\", 90s."),
        transform: nextTime)
    var at: WrittenTime?

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

    @Option(help: .value("duration", "The time that one attempt may take, such as 90 or 10m (default: no limit)."))
    var timeout: WrittenDuration?

    @Option(
        help: .value(
            "duration", "The time, such as 2h, in which the job must end, with its retries (default: no limit)."))
    var deadline: WrittenDuration?

    @Option(
        help: .value(
            "count",
            "Retries after the first attempt (default: http.retry.max of the daemon, \(RetryPolicy.standard.max) unless "
                + "configured otherwise, but 0 for programs, POST and PATCH)."),
        transform: whole(0...Int.max))
    var retries: Int?

    @Option(help: .value("text", "Submit only once: if the same job with this key exists, follow that job."))
    var key: String?

    @Option(help: .value("end", "When the key is free again: removed, with the job (default), or finished."))
    var keyUntil: JobSpec.KeyUntil?

    @Option(
        parsing: .singleValue, help: .value("text", "A tag to list and watch by; may be repeated."),
        completion: LiveCompletion.tags)
    var tag: [String] = []

    @Option(help: .value("text", "The name of the job in lists and progress.")) var label: String?

    @Option(
        help: .value("node", "The node on which the job must run, if several share the jobs."),
        completion: LiveCompletion.nodes)
    var on: String?

    @Flag(help: "Submit the job held, to start it later with the verb release; implies --detach.") var held = false
    @Flag(help: "Let the daemon tell of the job's end, by its hooks.finished.") var notify = false
    @Flag(name: .customLong("detach"), help: "Print the job's id without waiting for the job.") var detaches = false
    @Flag(name: .shortAndLong, help: "Show no progress; failures are still reported.") var quiet = false

    /// Whether the job is submitted only: a held job does not end by itself.
    var detach: Bool { detaches || held }

    func validate() throws {
        if delay != nil, at != nil { throw ValidationError("Use either --delay or --at, not both.") }
        if keyUntil != nil, key == nil { throw ValidationError("--key-until needs --key.") }
    }

    func spec(source: JSONObject) -> JSON {
        let (timeout, retry): (JSON?, JSON?) = (timeout?.seconds.json, retries.map { ["max": $0.json] })
        var spec: JSONObject = [
            "source": .object(source), "queue": queue?.json, "priority": priority?.json, "delay": delay?.seconds.json,
            "notBefore": at?.future.json, "timeout": timeout, "deadline": deadline?.seconds.json, "retry": retry,
            "key": key?.json, "keyUntil": keyUntil?.rawValue.json, "tags": tag.isEmpty ? JSON?.none : tag.json,
            "label": label?.json, "requires": on.map { ["node": $0.json] }, "held": held ? true : JSON?.none,
            "notify": notify ? true : JSON?.none,
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

// The values of these options are those of the members of a spec.
extension JobState: ExpressibleByArgument {}
extension JobSpec.KeyUntil: ExpressibleByArgument {}
extension SourceType: ExpressibleByArgument {}
extension DownloadSpec.Exists: ExpressibleByArgument {}
extension ScheduleCatchUp: ExpressibleByArgument {}
extension ScheduleOverlap: ExpressibleByArgument {}

extension UploadSpec.Method: ExpressibleByArgument {
    package init?(argument: String) { self.init(rawValue: argument.uppercased()) }
}

struct WaitedJobs: ExpressibleByArgument {
    let ids: [Int64]

    init?(argument: String) {
        let words = argument.split { $0 == "," || $0.isWhitespace }
        ids = words.compactMap { Int64($0) }.filter { $0 > 0 }
        guard !ids.isEmpty, ids.count == words.count else { return nil }
    }
}

struct RequestOptions: ParsableArguments {
    @Option(help: .value("word", "The request's method (default: GET, or POST with data).")) var method: String?
    @OptionGroup var fields: HeaderOptions

    @Option(
        name: [.customLong("data"), .customShort("d")],
        help: ArgumentHelp(
            "The request's body: text, @FILE for the bytes of a file, or @- for standard input.",
            discussion: "Content-Type is sent only if --header sets it.", valueName: "text"))
    var data: String?

    @Option(
        help: .value("json", "A JSON value as the request's body, with its Content-Type; the method is POST then."),
        transform: JSON.argument)
    var dataJSON: JSON?

    func validate() throws {
        if data != nil, dataJSON != nil { throw ValidationError("Use either --data or --data-json, not both.") }
    }

    func source(type: SourceType, url: String) async throws(CommandFailure) -> JSONObject {
        var source: JSONObject = [
            "type": type.rawValue.json, "url": url.json, "method": (method ?? (data == nil ? nil : "POST"))?.json,
            "headers": fields.headers, "json": dataJSON,
        ]
        guard let data else { return source }
        let body =
            data.hasPrefix("@")
            ? try await InputLines.member("body", of: String(data.dropFirst())) : ("body", .string(data))
        source[body.name] = body.value
        return source
    }
}

extension JSON {
    @Sendable static func argument(_ text: String) throws -> JSON {
        do { return try JSON(parsing: text, maximumDepth: 64) } catch {
            throw ValidationError(
                "it must be JSON, such as '{\"size\": 3}' or '\"text\"': \(error.place(in: text.utf8)).")
        }
    }
}

struct HeaderOptions: ParsableArguments {
    @Option(
        name: [.customLong("header"), .customShort("H")], parsing: .singleValue,
        help: .value("name: value", "A header field of the request; may be repeated."),
        transform: { text in
            guard let colon = text.firstIndex(of: ":"), colon != text.startIndex else {
                throw ValidationError("a header field must be \"Name: value\".")
            }
            let value = text[text.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
            return (String(text[..<colon]), String(value))
        })
    var header: [(name: String, value: String)] = []

    /// The member `headers` of a source; fields with the same name become one, separated by commas, cookies by semicolons.
    var headers: JSON? {
        if header.isEmpty { return nil }
        var object = JSONObject()
        for field in header {
            let known = object.names.first { $0.lowercased() == field.name.lowercased() }
            if let known, let earlier = object[known]?.string {
                object[known] = .string(earlier + (known.lowercased() == "cookie" ? "; " : ", ") + field.value)
            } else {
                object[field.name] = .string(field.value)
            }
        }
        return .object(object)
    }
}
