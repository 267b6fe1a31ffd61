import JobModel
import JobCore
import Synchronization

/// What the children of an `each` are made of, also in a short form that tells as much of how they run. A template of a MiB is so
/// gone through once, and not for each of thousands of children.
struct Template: Sendable {
    /// Bytes of a text of which the beginning says enough.
    private static let most = 1024

    let whole: JSON
    let short: JSON
    /// Bytes that the short form lacks, as a child made of it does.
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
                    return isValue && !hasExpression(member.value) ? .null : shortened(member.value)
                })
        default: return json
        }
    }

    private static func hasExpression(_ json: JSON) -> Bool {
        switch json {
        case .string(let text): TemplateText.hasExpression(text)
        case .array(let elements): elements.contains(where: hasExpression)
        case .object(let object): object.members.contains { hasExpression($0.value) }
        default: false
        }
    }
}

extension JSON {
    /// The part of a template that one link of its children is made of.
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

/// The templates of lists whose children run now, read and parsed once for many of them.
final class TemplateCache: Sendable {
    struct Key: Hashable {
        let job: JobID
        let list: Int64
    }

    private struct Entry {
        let key: Key
        let json: JSON
        let size: Int64
    }

    /// How many there are, and bytes of their texts.
    private static let most = (count: 64, bytes: Int64(16 << 20))

    private let entries = Mutex<[Entry]>([])

    /// The template of a list, which `read` gives with the bytes of its text.
    func template(_ key: Key, _ read: () throws(JobError) -> (JSON, Int64)) throws(JobError) -> JSON {
        if let found = entries.withLock({ $0.first { $0.key == key }?.json }) { return found }
        let (json, size) = try read()
        entries.withLock { entries in
            entries.removeAll { $0.key == key }
            entries.append(Entry(key: key, json: json, size: size))
            var bytes = entries.reduce(0) { $0 + $1.size }
            while entries.count > Self.most.count || bytes > Self.most.bytes, entries.count > 1 {
                bytes -= entries.removeFirst().size
            }
        }
        return json
    }
}
