import JobModel

/// An object as a list of names and values; members of inner objects are named by their path.
enum Sheet {
    /// The lines of `json`; within a width, long values continue on the lines below.
    static func lines(_ json: JSON, width: Int? = nil) -> [String] {
        let rows = rows(json, name: "")
        let names = rows.map(\.name.columns).max() ?? 0
        return rows.flatMap { String.hanging([$0.value], behind: $0.name.padded(to: names) + "  ", within: width) }
    }

    private static func rows(_ json: JSON, name: String) -> [(name: String, value: String)] {
        guard case .object(let object) = json else { return [(name.sanitized, text(json, name: name).sanitized)] }
        return object.members.flatMap { rows($0.value, name: name.isEmpty ? $0.name : "\(name).\($0.name)") }
    }

    private static func text(_ json: JSON, name: String) -> String {
        switch json {
        case .string(let text):
            Timestamp(rfc3339: text).map { "\(Quantities.time($0)) \(Quantities.zone($0))" } ?? text
        case .array(let elements): elements.map { text($0, name: "") }.joined(separator: " ")
        case .number(let number) where name == "uptime": Quantities.span(number.double)
        case .number(let number):
            if name.hasPrefix("bytes."), let bytes = number.int {
                "\(bytes) (\(Quantities.size(bytes)))"
            } else {
                number.text
            }
        case .null: "none"
        case .bool(let flag): flag ? "yes" : "no"
        case .object: json.description
        }
    }
}
