import ArgumentParser
import JobModel

/// The flags that become members of a job spec, whatever its source.
struct SpecOptions: ParsableArguments {
    @Option(
        name: .long, help: ArgumentHelp("The queue that the job waits in (default: default).", valueName: "name"),
        completion: LiveCompletion.queues)
    var queue: String?

    @Option(
        name: .long, parsing: .unconditional,
        help: ArgumentHelp("-1000 to 1000; a higher one starts first (default: 0).", valueName: "number"))
    var priority: Int?

    @Option(name: .long, help: ArgumentHelp("Seconds before the job may start.", valueName: "seconds"))
    var delay: Double?

    @Option(
        name: .long,
        help: ArgumentHelp("Seconds that one attempt may take (default: no bound).", valueName: "seconds"))
    var timeout: Double?

    @Option(
        name: .long,
        help: ArgumentHelp(
            "Seconds from now in which the whole job, with its retries, must be done (default: no bound).",
            valueName: "seconds"))
    var deadline: Double?

    @Option(
        name: .long,
        help: ArgumentHelp(
            "Retries after the first attempt; 0 for none (default: 4, but 0 for requests by POST and PATCH).",
            valueName: "count"))
    var retries: Int?

    @Option(
        name: .long,
        help: ArgumentHelp(
            "Submit only once: the same job with the same key joins the one that is there.", valueName: "text"))
    var key: String?

    @Option(
        name: .long, parsing: .singleValue,
        help: ArgumentHelp("A tag to list and watch by; may be given again for more.", valueName: "text"),
        completion: LiveCompletion.tags)
    var tag: [String] = []

    @Option(name: .long, help: ArgumentHelp("What lists and progress call the job.", valueName: "text"))
    var label: String?

    /// The spec of a job with this source.
    func spec(source: JSONObject) -> JSON {
        var spec = JSONObject()
        spec["source"] = .object(source)
        spec["queue"] = queue.map(JSON.string)
        spec["priority"] = priority.map { JSON($0) }
        spec["delay"] = delay.map { JSON($0) }
        spec["timeout"] = timeout.map { JSON($0) }
        spec["deadline"] = deadline.map { JSON($0) }
        spec["retry"] = retries.map { ["max": JSON($0)] }
        spec["key"] = key.map(JSON.string)
        if !tag.isEmpty { spec["tags"] = .array(tag.map(JSON.string)) }
        spec["label"] = label.map(JSON.string)
        return .object(spec)
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
