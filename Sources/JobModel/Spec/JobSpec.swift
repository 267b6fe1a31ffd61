/// A job as its client described it: a source, a chain of links, and how to run them.
///
/// It is immutable, and an object so that all copies of a job share it.
package final class JobSpec: Sendable {
    /// The whole spec as written, for showing, storing and comparing.
    package let json: JSON
    package let terms: JobTerms
    /// Seconds from submission to the earliest start.
    package let delay: Double?
    package let notBefore: Timestamp?
    /// Whether it waits for its owner's `job.release`.
    package let isHeld: Bool
    /// Whether its end is told to `hooks.finished`.
    package let notifies: Bool
    /// The node on which it and its children run; nil for any.
    package let node: String?

    /// The size as JSON text, in bytes.
    package let size: Int
    /// The JSON text to store; nil if it was stored before, or is part of another spec.
    package let text: [UInt8]?

    package static let members = [
        "source", "then", "queue", "priority", "delay", "notBefore", "timeout", "deadline", "retry", "key",
        "keyUntil", "held", "notify", "tags", "label", "requires",
    ]

    /// When another job can have the key.
    package enum KeyUntil: String, Sendable, CaseIterable {
        case removed, finished
    }

    init(
        _ reader: MemberReader, source: JobPlan.Step, links: [JobPlan.Link], isNew: Bool, isChild: Bool
    ) throws(SpecError) {
        json = .object(reader.object)
        text = isNew ? json.utf8 : nil
        // Both give the same size, so a job that is read counts as much as when it was stored.
        size = text?.count ?? json.size
        delay = try reader.number("delay", in: 0...Self.longest)
        notBefore = try reader.time("notBefore")
        // Both can be present without a value, if expressions supply them.
        guard reader.value("delay") == nil || reader.value("notBefore") == nil else {
            throw reader.fault("notBefore", "Give either \"delay\" or \"notBefore\", not both.")
        }
        let key = try Self.word(reader, "key", atMost: 256)
        terms = JobTerms(
            plan: JobPlan(source: source, links: links, deadline: try Self.duration(reader, "deadline")),
            queue: try Self.word(reader, "queue", atMost: 64) ?? "default",
            priority: try reader.integer("priority", in: -1000...1000) ?? 0,
            // The key of a child is only displayed: matching it would join jobs of different lists.
            key: isChild ? nil : key, keepsKey: try reader.choice("keyUntil", of: KeyUntil.self) != .finished,
            tags: try reader.strings("tags", atMost: 32, flaw: Self.flaw(inTag:)) ?? [],
            label: try Self.label(reader))
        isHeld = try reader.flag("held") ?? false
        notifies = try reader.flag("notify") ?? false
        node = try Self.node(reader)
    }

    /// The member of `requires`.
    private static func node(_ reader: MemberReader) throws(SpecError) -> String? {
        guard let requires = try reader.members(of: "requires") else { return nil }
        try requires.allow(["node"])
        return try requires.requiredString("node") { name in
            NodeDescription.isName(name) ? nil : "\"node\" must be a name of \(NodeDescription.nameForm)."
        }
    }

    package static func label(_ reader: MemberReader) throws(SpecError) -> String? {
        try word(reader, "label", atMost: 256)
    }

    /// The longest time in a spec, in seconds: ten years.
    package static let longest = 315_360_000.0

    package static func duration(_ reader: MemberReader, _ name: String) throws(SpecError) -> Double? {
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

    package static func flaw(inTag tag: String) -> String? {
        tag.isEmpty || tag.utf8.count > 256 ? "A tag must be 1 to 256 bytes long." : nil
    }

    /// Returns the spec of a job that fails with `error`, in place of a child that cannot be made.
    package static func failing(with error: JobError) -> JSON {
        ["source": ["type": "error", "kind": .string(error.kind.rawValue), "message": .string(error.message)]]
    }
}

extension JSON {
    /// Returns a child's spec with its parent's queue and priority where it names none.
    package func inheriting(queue: String, priority: Int) -> JSON {
        guard var members = object else { return self }
        if members["queue"]?.isNull != false { members["queue"] = .string(queue) }
        if members["priority"]?.isNull != false, priority != 0 { members["priority"] = JSON(priority) }
        return .object(members)
    }
}
