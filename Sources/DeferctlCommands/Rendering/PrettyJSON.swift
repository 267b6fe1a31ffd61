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
            switch scalar.value {
            case 0x7F...0x9F, 0x200E...0x200F, 0x2028...0x202E, 0x2066...0x2069:
                let digits = String(scalar.value, radix: 16)
                text += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: text.unicodeScalars.append(scalar)
            }
        }
        return text
    }
}
