import JobModel
import Synchronization

extension JSON {
    /// The part of a template that one link of a child needs.
    func part(ofLink link: Int) -> JSON {
        var part = JSONObject()
        part.append("label", ifPresent: self["label"])
        if link == 0 {
            part.append("source", ifPresent: self["source"])
        } else if let present = self["then"]?[link - 1] {
            part.append("then", .array(Array(repeating: .null, count: link - 1) + [present]))
        }
        return .object(part)
    }
}

/// The parsed templates of lists with running children.
final class TemplateCache: Sendable {
    struct Key: Hashable {
        let job: JobID
        let list: Int64
    }

    private struct State {
        var templates: [Key: JSON] = [:]
        /// Bytes of their texts.
        var size: Int64 = 0
    }

    private static let most = (count: 64, bytes: Int64(16 << 20))

    private let state = Mutex(State())

    /// The template of a list; `read` gives it and the bytes of its text.
    func template(_ key: Key, _ read: () throws(JobError) -> (JSON, Int64)) throws(JobError) -> JSON {
        if let found = state.withLock({ $0.templates[key] }) { return found }
        let (json, size) = try read()
        state.withLock { state in
            if state.templates.count >= Self.most.count || state.size + size > Self.most.bytes { state = State() }
            state.templates[key] = json
            state.size += size
        }
        return json
    }
}
