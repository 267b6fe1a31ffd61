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
