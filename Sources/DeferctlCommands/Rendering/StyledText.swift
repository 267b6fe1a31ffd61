/// The look of a piece of text on a terminal with colours.
enum TextStyle: String, Sendable, Equatable {
    // The values are the parameters of the control sequences: the colours that every terminal with colours has.
    case plain = ""
    case heading = "1"
    case faint = "2"
    case bad = "31"
    case good = "32"
    case warning = "33"
    case active = "36"

    /// The look of a state or of a doctor's level.
    init(state: String) {
        switch state {
        case "running": self = .active
        case "succeeded", "ok": self = .good
        case "failed", "error": self = .bad
        case "cancelled", "suspended", "held", "away", "warning": self = .warning
        case "skipped": self = .faint
        default: self = .plain
        }
    }
}

/// A piece of text with its look.
struct StyledText: Sendable, Equatable, ExpressibleByStringInterpolation {
    var text: String
    var style = TextStyle.plain

    init(_ text: String, _ style: TextStyle = .plain) { (self.text, self.style) = (text, style) }

    init(stringLiteral text: String) { self.init(text) }

    init(state: String) { self.init(state.sanitized, TextStyle(state: state)) }
}

/// What the output can show.
struct TextFormat: Sendable {
    /// The number of columns; nil if nothing is cut.
    var width: Int?
    var isUnicode = true
    var isColored = false

    /// The mark of a cut.
    var mark: String { isUnicode ? "…" : "..." }

    func within(_ width: Int?) -> TextFormat { TextFormat(width: width, isUnicode: isUnicode, isColored: isColored) }

    func paint(_ text: StyledText) -> String {
        guard isColored, !text.text.isEmpty, text.style != .plain else { return text.text }
        return "\u{1B}[\(text.style.rawValue)m\(text.text)\u{1B}[m"
    }
}

extension String {
    var columns: Int { reduce(0) { $0 + $1.columns } }

    /// The text cut to at most `width` columns, with `mark` at the end if it was cut.
    func cut(to width: Int, mark: String = "…") -> String {
        guard columns > width else { return self }
        let mark = mark.columns <= width ? mark : ""
        return prefix(columns: width - mark.columns) + mark
    }

    /// The text cut in the middle to at most `width` columns: of a URL, the beginning and the end say most.
    func cutInside(to width: Int, mark: String = "…") -> String {
        let room = width - mark.columns
        guard columns > width, room >= 4 else { return cut(to: width, mark: mark) }
        let end = String(reversed()).prefix(columns: room * 2 / 5)
        return prefix(columns: room - room * 2 / 5) + mark + String(end.reversed())
    }

    private func prefix(columns: Int) -> String {
        var room = columns
        return String(
            prefix { character in
                room -= character.columns
                return room >= 0
            })
    }

    /// The text in lines of at most `width` columns: lines that are too long are broken, between words where possible.
    func wrapped(to width: Int) -> [String] {
        split(omittingEmptySubsequences: false, whereSeparator: \.endsLine)
            .flatMap { String($0).wrappedLine(to: width) }
    }

    private func wrappedLine(to width: Int) -> [String] {
        let width = Swift.max(1, width)
        guard columns > width else { return [self] }
        var (lines, line) = ([String](), "")
        for word in split(separator: " ") {
            var rest = String(word)
            if !line.isEmpty, line.columns + 1 + rest.columns <= width {
                line += " " + rest
                continue
            }
            if !line.isEmpty { lines.append(line) }
            while rest.columns > width {
                // A character that is wider than the line stands alone.
                let piece = Swift.max(1, rest.prefix(columns: width).count)
                lines.append(String(rest.prefix(piece)))
                rest.removeFirst(piece)
            }
            line = rest
        }
        return line.isEmpty && !lines.isEmpty ? lines : lines + [line]
    }

    /// The text behind `count` spaces, in several lines if there is a limit on the width.
    func indented(by count: Int, within width: Int?) -> [String] {
        (width.map { wrapped(to: Swift.max(10, $0 - count)) } ?? [self]).map {
            String(repeating: " ", count: count) + $0
        }
    }

    /// The texts behind `head`, with a hanging indent, or below it on a narrow terminal.
    static func hanging(_ texts: [String], behind head: String, within width: Int?) -> [String] {
        let isNarrow = width.map { $0 - head.columns < 30 } ?? false
        let lines = texts.flatMap { $0.indented(by: isNarrow ? 4 : head.columns, within: width) }
        guard isNarrow, let width, texts.count > 1 || (head + texts[0]).columns > width else {
            return isNarrow ? [head + texts[0]] : [head + lines[0].dropFirst(head.columns)] + lines.dropFirst()
        }
        return [head.cut(to: width)] + lines
    }

    func padded(to width: Int) -> String { self + String(repeating: " ", count: Swift.max(0, width - columns)) }

    func aligned(to width: Int) -> String { String(repeating: " ", count: Swift.max(0, width - columns)) + self }
}

extension Character {
    /// Whether it is a line feed, also one that belongs to a carriage return.
    var endsLine: Bool { self == "\n" || self == "\r\n" }

    /// 2 columns for wide scripts and pictures, 0 for a combining mark.
    fileprivate var columns: Int {
        guard let first = unicodeScalars.first else { return 0 }
        if unicodeScalars.contains(where: { $0.properties.isEmojiPresentation || $0.value == 0xFE0F }) { return 2 }
        switch first.properties.generalCategory {
        case .nonspacingMark, .enclosingMark, .format, .control: return 0
        default: break
        }
        switch first.value {
        case 0x1100...0x115F, 0x2E80...0x303E, 0x3041...0xA4CF, 0xA960...0xA97F, 0xAC00...0xD7A3, 0xF900...0xFAFF,
            0xFE30...0xFE6F, 0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x1B000...0x1B2FF, 0x20000...0x3FFFD:
            return 2
        default: return 1
        }
    }
}
