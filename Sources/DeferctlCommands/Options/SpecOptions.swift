import ArgumentParser
import JobModel

/// The flags that become members of a job spec, whatever its source.
struct SpecOptions: ParsableArguments {
    @Option(
        help: .value("name", "The queue that the job waits in (default: default)."), completion: LiveCompletion.queues)
    var queue: String?

    @Option(parsing: .unconditional, help: .value("number", "-1000 to 1000; a higher one starts first (default: 0)."))
    var priority: Int?

    @Option(help: .value("seconds", "Seconds before the job may start.")) var delay: Double?
    @Option(help: .value("seconds", "Seconds that one attempt may take (default: no bound).")) var timeout: Double?

    @Option(
        help: .value(
            "seconds", "Seconds from now in which the whole job, with its retries, must be done (default: no bound)."))
    var deadline: Double?

    @Option(
        help: .value(
            "count", "Retries after the first attempt; 0 for none (default: 4, but 0 for requests by POST and PATCH)."))
    var retries: Int?

    @Option(help: .value("text", "Submit only once: the same job with the same key joins the one that is there."))
    var key: String?

    @Option(
        parsing: .singleValue, help: .value("text", "A tag to list and watch by; may be given again for more."),
        completion: LiveCompletion.tags)
    var tag: [String] = []

    @Option(help: .value("text", "What lists and progress call the job.")) var label: String?

    /// The spec of a job with this source.
    func spec(source: JSONObject) -> JSON {
        .object([
            "source": .object(source), "queue": queue?.json, "priority": priority?.json, "delay": delay?.json,
            "timeout": timeout?.json, "deadline": deadline?.json, "retry": retries.map { ["max": $0.json] },
            "key": key?.json, "tags": tag.isEmpty ? JSON?.none : tag.json, "label": label?.json,
        ])
    }

    func validate() throws {
        let times = [("--delay", delay), ("--timeout", timeout), ("--deadline", deadline)]
        for (name, value) in times {
            guard let value else { continue }
            guard value.isFinite, value >= 0 else { throw ValidationError("\(name) must be a number of seconds.") }
        }
        if let retries, retries < 0 { throw ValidationError("--retries must not be negative.") }
    }
}

/// The flags for the request of a `fetch` or `json`.
struct RequestOptions: ParsableArguments {
    /// The most bytes that are read for a body; the daemon's own bound may be lower.
    private static let limit = 64 << 20

    @Option(help: .value("word", "The request's method (default: GET, or POST with --data).")) var method: String?
    @OptionGroup var fields: HeaderOptions

    @Option(
        name: [.customLong("data"), .customShort("d")],
        help: ArgumentHelp(
            "The request's body: text, @FILE for a file's bytes, or @- for standard input.",
            discussion: "No Content-Type is sent unless --header says so.", valueName: "text"))
    var data: String?

    /// The source of this type that asks for `url`.
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

/// The flag for header fields of a request.
struct HeaderOptions: ParsableArguments {
    @Option(
        name: [.customLong("header"), .customShort("H")], parsing: .singleValue,
        help: .value("name: value", "A header field of the request; may be given again for more."))
    var header: [String] = []

    /// The member `headers` of a source, or nil without any. Fields of one name become one, with commas.
    var headers: JSON? {
        if header.isEmpty { return nil }
        var object = JSONObject()
        for (name, value) in header.compactMap(Self.parse) {
            let known = object.names.first { $0.lowercased() == name.lowercased() }
            if let known, let earlier = object[known]?.string {
                object[known] = .string(earlier + ", " + value)
            } else {
                object[name] = .string(value)
            }
        }
        return .object(object)
    }

    func validate() throws {
        if let wrong = header.first(where: { Self.parse($0) == nil }) {
            throw ValidationError("\"\(wrong)\" is no header field; write it as \"Name: value\".")
        }
    }

    private static func parse(_ field: String) -> (name: String, value: String)? {
        guard let colon = field.firstIndex(of: ":"), colon != field.startIndex else { return nil }
        let value = field[field.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
        return (String(field[..<colon]), String(value))
    }
}
