/// A job as its client described it: a source, a chain of links, and how to run them.
///
/// It is immutable, and an object so that all copies of a job share it.
package final class JobSpec: Sendable {
    /// The whole spec as written, for showing, storing and comparing.
    package let json: JSON
    package let source: Step
    package let links: [Link]
    package let queue: String
    /// Higher starts first; -1000 to 1000.
    package let priority: Int
    /// Seconds from submission to the earliest start.
    package let delay: Double?
    package let notBefore: Timestamp?
    /// The bound on one attempt of one source, in seconds.
    package let timeout: Double?
    /// The bound on the whole job from its submission, in seconds.
    package let deadline: Double?
    package let retry: RetryPolicy?
    package let key: String?
    package let tags: [String]
    package let label: String?

    /// The size as JSON text, in bytes.
    package let size: Int
    /// The JSON text to store; nil if it was stored before, or is part of another spec.
    package let text: [UInt8]?

    package static let members = [
        "source", "then", "queue", "priority", "delay", "notBefore", "timeout", "deadline", "retry", "key", "tags",
        "label",
    ]

    init(reader: MemberReader, source: Step, links: [Link], isNew: Bool) throws(SpecError) {
        json = .object(reader.object)
        text = isNew ? json.utf8 : nil
        // Both give the same size, so a job that is read counts as much as when it was stored.
        size = text?.count ?? json.size
        self.source = source
        self.links = links
        queue = try Self.word(reader, "queue", atMost: 64) ?? "default"
        priority = try reader.integer("priority", in: -1000...1000) ?? 0
        delay = try reader.number("delay", in: 0...Self.longest)
        notBefore = try reader.time("notBefore")
        // Both can be present without a value, if expressions supply them.
        guard reader.value("delay") == nil || reader.value("notBefore") == nil else {
            throw reader.fault("notBefore", "Give either \"delay\" or \"notBefore\", not both.")
        }
        timeout = try Self.duration(reader, "timeout")
        deadline = try Self.duration(reader, "deadline")
        retry = try RetryPolicy(reader, "retry")
        key = try Self.word(reader, "key", atMost: 256)
        tags = try Self.tags(reader)
        label = try Self.word(reader, "label", atMost: 256)
    }

    /// Creates a stand-in for a spec that was not read; it is shown by its size and cannot run.
    private init(
        size: Int, links: Int, queue: String, priority: Int, key: String?, tags: [String], label: String? = nil
    ) {
        json = .object(JSONObject())
        text = nil
        self.size = size
        source = Step(.return(.null))
        self.links = Array(repeating: .pair(then: nil, fail: nil, on: nil), count: links)
        self.queue = queue
        self.priority = priority
        delay = nil
        notBefore = nil
        timeout = nil
        deadline = nil
        retry = nil
        self.key = key
        self.tags = tags
        self.label = label
    }

    /// Creates a stand-in from a row.
    convenience init(unreadOf row: JobRow) {
        self.init(
            size: row.specSize, links: row.plan.links.count, queue: row.queue, priority: row.priority, key: row.key,
            tags: row.tags)
    }

    /// The stand-in for a spec that is too long to be shown.
    var withoutSteps: JobSpec {
        JobSpec(size: size, links: 0, queue: queue, priority: priority, key: key, tags: tags, label: label)
    }

    /// Whether this is a whole spec, not a stand-in.
    var isPresent: Bool { json["source"] != nil }

    /// The longest time in a spec, in seconds: ten years.
    static let longest = 315_360_000.0

    static func duration(_ reader: MemberReader, _ name: String) throws(SpecError) -> Double? {
        guard let seconds = try reader.number(name, in: 0...longest) else { return nil }
        guard seconds > 0 || reader.isOpen(name) else {
            throw reader.fault(name, "\"\(name)\" must be more than 0 seconds.")
        }
        return seconds
    }

    private static func word(_ reader: MemberReader, _ name: String, atMost limit: Int) throws(SpecError) -> String? {
        try reader.string(name) { text in
            text.isEmpty || text.utf8.count > limit ? "\"\(name)\" must be 1 to \(limit) bytes long." : nil
        }
    }

    private static func tags(_ reader: MemberReader) throws(SpecError) -> [String] {
        try reader.strings("tags", atMost: 32, flaw: flaw(inTag:)) ?? []
    }

    /// Returns why a text is not a tag, or nil if it is.
    package static func flaw(inTag tag: String) -> String? {
        tag.isEmpty || tag.utf8.count > 256 ? "A tag must be 1 to 256 bytes long." : nil
    }

    /// Returns the retry policy of `step`; a possible POST or PATCH is retried only if the spec says so.
    package func retryPolicy(of step: Step) -> RetryPolicy {
        if let policy = step.retry ?? retry { return policy }
        var policy = RetryPolicy.standard
        if case .source(let source) = step.action, let method = source["method"]?.string,
            ["POST", "PATCH"].contains(method.uppercased()) || TemplateText.hasExpression(method)
        {
            policy.max = 0
        }
        return policy
    }
}

extension JobSpec {
    /// Returns the spec of a job that fails with `error`, in place of a child that cannot be made.
    package static func failing(with error: JobError) -> JSON {
        ["source": ["type": "error", "kind": .string(error.kind.rawValue), "message": .string(error.message)]]
    }
}

extension JobSpec: CustomStringConvertible {
    /// The spec as JSON text.
    package var description: String { json.description }
}

extension RetryPolicy {
    /// Reads the member `name`; omitted parts get standard values.
    init?(_ reader: MemberReader, _ name: String) throws(SpecError) {
        guard let json = reader.value(name) else { return nil }
        self = .standard
        if reader.isOpen(name) { return }
        let members = try MemberReader(json, at: reader.pointer(to: name), mode: reader.mode, isStored: reader.isStored)
        try members.allow(["max", "initial", "factor", "maxDelay", "jitter"])
        max = try members.integer("max", in: 0...1000) ?? max
        initial = try members.number("initial", in: 0...JobSpec.longest) ?? initial
        factor = try members.number("factor", in: 1...1000) ?? factor
        maxDelay = try members.number("maxDelay", in: 0...JobSpec.longest) ?? maxDelay
        jitter = try members.flag("jitter") ?? jitter
    }
}
