/// How a piece of text looks where colours are shown.
enum TextStyle: Sendable, Equatable {
    case plain, heading, good, bad, warning, active, faint

    /// The look of a job's state.
    init(state: String) {
        switch state {
        case "running": self = .active
        case "succeeded": self = .good
        case "failed": self = .bad
        case "cancelled", "suspended": self = .warning
        default: self = .plain
        }
    }

    /// The parameters of the control sequence that begins it: the colours that every terminal with colours has.
    fileprivate var parameters: String? {
        switch self {
        case .plain: nil
        case .heading: "1"
        case .good: "32"
        case .bad: "31"
        case .warning: "33"
        case .active: "36"
        case .faint: "2"
        }
    }
}

/// A piece of text with how it looks. Its width is that of the text.
struct StyledText: Sendable, Equatable, ExpressibleByStringLiteral {
    var text: String
    var style = TextStyle.plain

    init(_ text: String, _ style: TextStyle = .plain) {
        self.text = text
        self.style = style
    }

    init(stringLiteral text: String) {
        self.init(text)
    }
}

/// Colours text, or leaves it as it is.
struct Palette: Sendable, Equatable {
    /// No colours.
    static let none = Palette(isColored: false)

    let isColored: Bool

    func paint(_ text: String, _ style: TextStyle) -> String {
        guard isColored, !text.isEmpty, let parameters = style.parameters else { return text }
        return "\u{1B}[\(parameters)m\(text)\u{1B}[m"
    }

    func paint(_ text: StyledText) -> String { paint(text.text, text.style) }
}

extension String {
    /// The columns of text that a palette has painted.
    var paintedColumns: Int {
        split(separator: "\u{1B}", omittingEmptySubsequences: false).enumerated().reduce(0) { sum, piece in
            let text = piece.offset == 0 ? piece.element : piece.element.drop { $0 != "m" }.dropFirst()
            return sum + String(text).columns
        }
    }
}
