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

/// Escapes in a stream of bytes what would steer a terminal, except tabs and line feeds.
struct TerminalFilter {
    /// The beginning of a character that the next bytes complete.
    private var partial: [UInt8] = []
    private var missing = 0

    mutating func filter(_ bytes: [UInt8]) -> [UInt8] {
        var shown: [UInt8] = []
        shown.reserveCapacity(bytes.count)
        for byte in bytes {
            if missing > 0, byte & 0xC0 == 0x80 {
                partial.append(byte)
                missing -= 1
                if missing > 0 { continue }
                let text = String(validating: partial, as: UTF8.self)
                shown += text.map { Array($0.sanitized.utf8) } ?? partial.flatMap(Self.shown)
                partial = []
                continue
            }
            shown += partial.flatMap(Self.shown)
            (partial, missing) = ([], 0)
            switch byte {
            case 0x09, 0x0A: shown.append(byte)
            case 0x0D: continue
            case 0xC2...0xF4: (partial, missing) = ([byte], byte < 0xE0 ? 1 : byte < 0xF0 ? 2 : 3)
            default: shown += Self.shown(byte)
            }
        }
        return shown
    }

    /// A byte that is a character, or that belongs to none: 0x9B alone begins a control sequence for some terminals.
    private static func shown(_ byte: UInt8) -> [UInt8] {
        let scalar = Unicode.Scalar(byte)
        return scalar.steersTerminal ? Array(scalar.escape.utf8) : [byte]
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
