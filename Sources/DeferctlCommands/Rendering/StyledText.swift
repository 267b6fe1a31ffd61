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
        case "cancelled", "suspended", "held", "warning": self = .warning
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

    func within(_ width: Int?) -> TextFormat {
        TextFormat(width: width, isUnicode: isUnicode, isColored: isColored)
    }

    func paint(_ text: StyledText) -> String {
        guard isColored, !text.text.isEmpty, text.style != .plain else { return text.text }
        return "\u{1B}[\(text.style.rawValue)m\(text.text)\u{1B}[m"
    }
}

extension String {
    var paintedColumns: Int {
        split(separator: "\u{1B}", omittingEmptySubsequences: false).enumerated().reduce(0) { sum, piece in
            let text = piece.offset == 0 ? piece.element : piece.element.drop { $0 != "m" }.dropFirst()
            return sum + String(text).columns
        }
    }
}
