import JobModel
import JobCore
import Synchronization

/// The template of the children of an `each`, and a short form with everything that decides how they run, so that a
/// template of a MiB is not checked again for each of thousands of children.
struct Template: Sendable {
    /// Longer texts are cut to so many bytes.
    private static let most = 1024

    let whole: JSON
    let short: JSON
    /// Bytes that the short form lacks.
    let left: Int

    init(_ template: JSON) {
        whole = template
        short = Self.shortened(template)
        left = whole.size - short.size
    }

    private static func shortened(_ json: JSON) -> JSON {
        switch json {
        case .string(let text):
            guard text.utf8.count > most, !TemplateText.hasExpression(text) else { return json }
            return .string(text.shortened(to: most))
        case .array(let elements): return .array(elements.map(shortened))
        case .object(let object):
            return .object(
                object.mapValues { member in
                    let isValue = member.name == "value" || member.name == "return"
                    return isValue && !member.value.hasExpression ? .null : shortened(member.value)
                })
        default: return json
        }
    }
}

extension JSON {
    /// The part of a template that one link of a child needs.
    func part(ofLink link: Int) -> JSON {
        let present = link > 0 ? self["then"]?[link - 1] : nil
        return .object([
            "label": self["label"], "source": link == 0 ? self["source"] : nil,
            "then": present.map { .array(Array(repeating: .null, count: link - 1) + [$0]) },
        ])
    }
}

/// The parsed templates of lists with running children.
final class TemplateCache: Sendable {
    private static let most = (count: 64, bytes: Int64(16 << 20))

    /// The templates by the numbers of their lists, and the bytes of their texts.
    private let state = Mutex<(templates: [Int64: JSON], size: Int64)>(([:], 0))

    /// The template of a list; `read` gives it and the bytes of its text.
    func template(_ list: Int64, _ read: () throws(JobError) -> (JSON, Int64)) throws(JobError) -> JSON {
        if let found = state.withLock({ $0.templates[list] }) { return found }
        let (json, size) = try read()
        state.withLock { state in
            if state.templates.count >= Self.most.count || state.size + size > Self.most.bytes { state = ([:], 0) }
            state.templates[list] = json
            state.size += size
        }
        return json
    }
}
