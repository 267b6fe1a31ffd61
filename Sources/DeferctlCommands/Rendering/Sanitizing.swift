import JobModel

extension String {
    /// The text with everything escaped that would control a terminal, break the line or change the writing direction.
    ///
    /// Names, labels and messages come from other users and from servers.
    var sanitized: String {
        guard unicodeScalars.contains(where: \.steersTerminal) else { return self }
        return unicodeScalars.map { $0.steersTerminal ? $0.escape : String($0) }.joined()
    }
}

extension Unicode.Scalar {
    /// Whether this is a control character (C0, DEL, C1), a line or paragraph separator, or a control of direction.
    fileprivate var steersTerminal: Bool {
        switch value {
        case 0..<0x20, 0x7F...0x9F, 0x61C, 0x200E...0x200F, 0x2028...0x202E, 0x2066...0x2069: true
        default: false
        }
    }

    fileprivate var escape: String {
        switch self {
        case "\n": "\\n"
        case "\r": "\\r"
        case "\t": "\\t"
        default: value < 0x100 ? "\\x" + digits(2) : "\\u{\(digits(4))}"
        }
    }

    /// The value in hexadecimal, with leading zeros.
    fileprivate func digits(_ count: Int) -> String {
        let digits = String(value, radix: 16)
        return String(repeating: "0", count: max(0, count - digits.count)) + digits
    }
}

/// Escapes in a stream of text what would steer a terminal, except tabs and line feeds.
struct TerminalFilter {
    /// The beginning of a character that the next bytes complete.
    private var partial: [UInt8] = []

    mutating func filter(_ bytes: [UInt8]) -> [UInt8] {
        let all = partial + bytes
        let starts = [0xC2...0xDF, 0xE0...0xEF, 0xF0...0xF4] as [ClosedRange<UInt8>]
        let end = all.indices.suffix(3).first { index in
            guard let more = starts.firstIndex(where: { $0.contains(all[index]) }) else { return false }
            let rest = all[(index + 1)...]
            return rest.count <= more && rest.allSatisfy { $0 & 0xC0 == 0x80 }
        }
        partial = end.map { Array(all[$0...]) } ?? []
        return String(decoding: all.dropLast(partial.count), as: UTF8.self).unicodeScalars.reduce(into: []) {
            shown, scalar in
            switch scalar {
            case "\r": break
            case "\t", "\n": shown.append(UInt8(ascii: scalar))
            default: shown += (scalar.steersTerminal ? scalar.escape : String(scalar)).utf8
            }
        }
    }
}

/// JSON with line breaks, safe for a terminal.
enum PrettyJSON {
    static func text(_ json: JSON, indent: String = "") -> String {
        let margin = indent + "  "
        switch json {
        case .array(let elements) where !elements.isEmpty:
            let lines = elements.map { margin + text($0, indent: margin) }
            return "[\n" + lines.joined(separator: ",\n") + "\n\(indent)]"
        case .object(let object) where !object.members.isEmpty:
            let lines = object.members.map { member in
                "\(margin)\(scalar(.string(member.name))): \(text(member.value, indent: margin))"
            }
            return "{\n" + lines.joined(separator: ",\n") + "\n\(indent)}"
        default: return scalar(json)
        }
    }

    /// A value on one line. JSON requires no escapes for DEL and characters beyond ASCII, so they are added here.
    static func scalar(_ json: JSON) -> String {
        json.description.unicodeScalars.map { $0.steersTerminal ? "\\u" + $0.digits(4) : String($0) }.joined()
    }
}
