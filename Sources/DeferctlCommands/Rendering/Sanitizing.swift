import JobModel

extension String {
    /// The text with everything that would steer a terminal, break the line or turn the direction of writing spelt out.
    ///
    /// Names, labels and messages come from other users and from servers; on a terminal they must stay text.
    var sanitized: String {
        guard unicodeScalars.contains(where: \.steersTerminal) else { return self }
        return unicodeScalars.map { $0.steersTerminal ? $0.spelling : String($0) }.joined()
    }
}

extension Unicode.Scalar {
    /// Whether this is a control character (C0, DEL, C1), a line or paragraph separator, or a control of direction.
    var steersTerminal: Bool {
        switch value {
        case 0..<0x20, 0x7F...0x9F, 0x200E...0x200F, 0x2028...0x202E, 0x2066...0x2069: true
        default: false
        }
    }

    fileprivate var spelling: String {
        switch self {
        case "\n": "\\n"
        case "\r": "\\r"
        case "\t": "\\t"
        default: value < 0x100 ? "\\x" + digits(2) : "\\u{\(digits(4))}"
        }
    }

    /// The value in hexadecimal, with zeros before it.
    func digits(_ count: Int) -> String {
        let digits = String(value, radix: 16)
        return String(repeating: "0", count: max(0, count - digits.count)) + digits
    }
}

/// Spells out, in a stream of bytes, what would steer a terminal; tabs and line feeds pass.
struct TerminalFilter {
    /// A first byte of a C1 control character may have come at the end of the bytes before.
    private var hasLead = false

    /// The bytes as a terminal may be given them.
    mutating func filter(_ bytes: [UInt8]) -> [UInt8] {
        var shown: [UInt8] = []
        shown.reserveCapacity(bytes.count)
        for byte in bytes {
            if hasLead {
                hasLead = false
                if (0x80...0x9F).contains(byte) {
                    shown += Self.spelling(byte)
                    continue
                }
                shown.append(0xC2)
            }
            switch byte {
            case 0x09, 0x0A: shown.append(byte)
            case 0x0D: continue
            case 0..<0x20, 0x7F: shown += Self.spelling(byte)
            case 0xC2: hasLead = true
            default: shown.append(byte)
            }
        }
        return shown
    }

    private static func spelling(_ byte: UInt8) -> [UInt8] {
        Array(("\\x" + Unicode.Scalar(byte).digits(2)).utf8)
    }
}

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
