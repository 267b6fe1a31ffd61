/// A job as its client wrote it down: a source, the chain of links behind it, and how to run them.
///
/// It never changes; it is an object so that all copies of a job share one.
package final class JobSpec: Sendable {
    /// The whole spec as it was written, for showing, storing and comparing.
    package let json: JSON
    package let source: Step
    package let links: [Link]
    package let queue: String
    /// Higher starts first; -1000 to 1000.
    package let priority: Int
    /// Seconds from its submission before it may start.
    package let delay: Double?
    package let notBefore: Timestamp?
    /// Bounds one attempt of one source, in seconds.
    package let timeout: Double?
    /// Bounds the whole job from its submission, in seconds.
    package let deadline: Double?
    package let retry: RetryPolicy?
    package let key: String?
    package let tags: [String]
    package let label: String?

    /// How many bytes it takes as JSON text.
    package let size: Int
    /// The spec as JSON text, to be stored; nil where it was stored before, or is part of another spec.
    package let text: [UInt8]?

    package static let members = [
        "source", "then", "queue", "priority", "delay", "notBefore", "timeout", "deadline", "retry", "key", "tags",
        "label",
    ]

    init(reader: MemberReader, source: Step, links: [Link], isNew: Bool) throws(SpecError) {
        json = .object(reader.object)
        text = isNew ? json.utf8 : nil
        // Both ways give the same size, so a job that is read counts as much as when it was stored.
        size = text?.count ?? json.size
        self.source = source
        self.links = links
        queue = try Self.word(reader, "queue", atMost: 64) ?? "default"
        priority = try reader.integer("priority", in: -1000...1000) ?? 0
        delay = try reader.number("delay", in: 0...Self.longest)
        notBefore = try reader.time("notBefore")
        // Both can be there without a value yet, where expressions give them.
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

    /// What is known of a spec that is not at hand: it is shown by its size, and cannot be run.
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

    /// What a row tells of its spec.
    convenience init(unreadOf row: JobRow) {
        self.init(
            size: row.specSize, links: row.plan.links.count, queue: row.queue, priority: row.priority, key: row.key,
            tags: row.tags)
    }

    /// What is kept of a spec that is too long to be shown.
    var withoutSteps: JobSpec {
        JobSpec(size: size, links: 0, queue: queue, priority: priority, key: key, tags: tags, label: label)
    }

    /// Whether it is at hand, and not only what a row tells of it.
    var isPresent: Bool { json["source"] != nil }

    /// The longest time that a spec may name, in seconds: ten years.
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

    /// Why a text is no tag; nil where it is one.
    package static func flaw(inTag tag: String) -> String? {
        tag.isEmpty || tag.utf8.count > 256 ? "A tag must be 1 to 256 bytes long." : nil
    }

    /// How `step` is retried. A POST or PATCH, or what an expression may turn into one, is retried only if the spec says so.
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
    /// What stands for the spec of a child that cannot be made: a job that fails with the reason.
    package static func failing(with error: JobError) -> JSON {
        ["source": ["type": "error", "kind": .string(error.kind.rawValue), "message": .string(error.message)]]
    }
}

extension JobSpec: CustomStringConvertible {
    /// The spec as JSON text.
    package var description: String { json.description }
}

extension RetryPolicy {
    /// Reads the member `name`, with the standard's value for each part left out.
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
