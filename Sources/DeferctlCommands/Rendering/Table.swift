/// Rows of cells, written in columns as wide as their widest cell.
///
/// Where a width is given, all of it fits: columns that may be are left out first, then cells are cut.
struct Table {
    /// A column's head, its alignment, and what becomes of it where there is little room.
    struct Column {
        /// Where cells that are too wide are cut.
        enum Cut: Sendable { case nowhere, end, middle }

        let head: String
        let isNumber: Bool
        let cut: Cut
        /// The width to which cells are cut at most.
        let least: Int
        /// The columns of the highest rank are left out first; those without one stay.
        let rank: Int?

        init(_ head: String, isNumber: Bool = false, cut: Cut = .nowhere, least: Int = 8, rank: Int? = nil) {
            (self.head, self.isNumber, self.cut, self.least, self.rank) = (head, isNumber, cut, least, rank)
        }

        /// A column of numbers, which are never cut.
        static func number(_ head: String, rank: Int? = nil) -> Column { Column(head, isNumber: true, rank: rank) }
    }

    /// The spaces between two columns.
    private static let gap = 2

    let columns: [Column]
    private(set) var rows: [[StyledText]] = []

    init(_ columns: [Column]) {
        self.columns = columns
    }

    mutating func append(_ row: [StyledText]) { rows.append(row) }

    /// The table line by line, as `format` asks for it.
    func lines(_ format: TextFormat = TextFormat(), showsHead: Bool = true) -> [String] {
        let all = (showsHead ? [columns.map { StyledText($0.head, .heading) }] : []) + rows
        let natural = columns.indices.map { index in all.lazy.map { $0[index].text.columns }.max() ?? 0 }
        let empty = columns.indices.filter { index in rows.allSatisfy { $0[index].text.isEmpty } }
        let layout = layout(natural, empty: rows.isEmpty ? [] : empty, width: format.width)
        return all.map { line($0, layout, format) }
    }

    private func line(_ row: [StyledText], _ layout: [(column: Int, width: Int)], _ format: TextFormat) -> String {
        var (plain, painted) = ("", "")
        for (position, (index, cellWidth)) in layout.enumerated() {
            let cell = row[index]
            let text =
                columns[index].cut == .middle
                ? cell.text.cutInside(to: cellWidth, mark: format.mark)
                : cell.text.cut(to: cellWidth, mark: format.mark)
            let space = String(repeating: " ", count: max(0, cellWidth - text.columns))
            let (before, after) =
                columns[index].isNumber ? (space, "") : ("", position == layout.count - 1 ? "" : space)
            let separator = position == 0 ? "" : String(repeating: " ", count: Self.gap)
            plain += separator + before + text + after
            painted += separator + before + format.palette.paint(text, cell.style) + after
        }
        // Where not even the least of it fits.
        if let width = format.width, plain.columns > width { return plain.cut(to: width, mark: format.mark) }
        return painted
    }

    /// The columns that are shown, with their widths; those without a word are the first that are left out.
    private func layout(_ natural: [Int], empty: [Int], width: Int?) -> [(column: Int, width: Int)] {
        guard let width else { return natural.indices.map { ($0, natural[$0]) } }
        var shown = Array(natural.indices)
        var widths = shown.map { columns[$0].cut == .nowhere ? natural[$0] : min(natural[$0], columns[$0].least) }
        func room() -> Int { width - shown.reduce(Self.gap * (shown.count - 1)) { $0 + widths[$1] } }
        if room() < 0 { shown.removeAll { empty.contains($0) && columns[$0].rank != nil } }
        while room() < 0, let last = shown.max(by: { (columns[$0].rank ?? -1) < (columns[$1].rank ?? -1) }),
            columns[last].rank != nil
        {
            shown.removeAll { $0 == last }
        }
        var rest = room()
        while rest > 0, let narrow = shown.filter({ widths[$0] < natural[$0] }).min(by: { widths[$0] < widths[$1] }) {
            widths[narrow] += 1
            rest -= 1
        }
        return shown.map { ($0, widths[$0]) }
    }
}

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

/// What text for people is fitted to.
struct TextFormat: Sendable {
    /// The columns there are; nil where nothing is cut.
    var width: Int?
    /// Whether more than ASCII can be shown.
    var isUnicode = true
    var palette = Palette.none

    /// What marks a cut.
    var mark: String { isUnicode ? "…" : "..." }

    /// The same for another width.
    func within(_ width: Int?) -> TextFormat {
        TextFormat(width: width, isUnicode: isUnicode, palette: palette)
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
