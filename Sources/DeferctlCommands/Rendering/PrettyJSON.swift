import JobModel

/// JSON with line breaks, safe to show on a terminal.
enum PrettyJSON {
    static func text(_ json: JSON, indent: Int = 0) -> String {
        let margin = String(repeating: "  ", count: indent + 1)
        let end = String(repeating: "  ", count: indent)
        switch json {
        case .array(let elements) where !elements.isEmpty:
            let lines = elements.map { margin + text($0, indent: indent + 1) }
            return "[\n" + lines.joined(separator: ",\n") + "\n\(end)]"
        case .object(let object) where !object.members.isEmpty:
            let lines = object.members.map { member in
                "\(margin)\(scalar(.string(member.name))): \(text(member.value, indent: indent + 1))"
            }
            return "{\n" + lines.joined(separator: ",\n") + "\n\(end)}"
        default: return scalar(json)
        }
    }

    /// A value on one line. JSON's own escapes leave DEL and what is beyond ASCII as it is, so those are escaped here.
    private static func scalar(_ json: JSON) -> String {
        var text = ""
        for scalar in json.description.unicodeScalars {
            text += scalar.steersTerminal ? "\\u" + scalar.digits(4) : String(scalar)
        }
        return text
    }
}
