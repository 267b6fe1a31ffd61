import JobModel

/// A table of rows, with columns as wide as their widest cells.
///
/// If there is too little room, columns are left out, empty ones first, and then cells are cut.
struct Table<Row> {
    struct Column {
        enum Cut: Sendable { case nowhere, end, middle }

        let head: String
        let isNumber: Bool
        let cut: Cut
        /// Cells are not cut below this width.
        let least: Int
        /// Columns with the highest rank are left out first; a column without a rank stays.
        let rank: Int?
        /// Whether it is only shown if it has a cell that is not empty.
        let isOptional: Bool
        let cell: (Row) -> StyledText

        init(
            _ head: String, isNumber: Bool = false, cut: Cut = .nowhere, least: Int = 8, rank: Int? = nil,
            isOptional: Bool = false, _ cell: @escaping (Row) -> StyledText
        ) {
            (self.head, self.isNumber, self.cut, self.least, self.rank) = (head, isNumber, cut, least, rank)
            (self.isOptional, self.cell) = (isOptional, cell)
        }

        init(_ head: String, cut: Cut = .nowhere, least: Int = 8, rank: Int? = nil, text: @escaping (Row) -> String) {
            self.init(head, cut: cut, least: least, rank: rank) { StyledText(text($0)) }
        }

        /// A column of numbers, which are right-aligned and never cut.
        static func number(
            _ head: String, rank: Int? = nil, isOptional: Bool = false, _ text: @escaping (Row) -> String
        ) -> Column {
            Column(head, isNumber: true, rank: rank, isOptional: isOptional) { StyledText(text($0)) }
        }
    }

    private typealias Layout = [(column: Int, width: Int)]

    private static var gap: Int { 2 }

    let columns: [Column]

    init(_ columns: [Column]) { self.columns = columns }

    func lines(_ rows: some Sequence<Row>, _ format: TextFormat = TextFormat(), showsHead: Bool = true) -> [String] {
        let cells = rows.map { row in columns.map { $0.cell(row) } }
        let all = (showsHead ? [columns.map { StyledText($0.head, .heading) }] : []) + cells
        let natural = columns.indices.map { index in all.lazy.map { $0[index].text.columns }.max() ?? 0 }
        let empty = columns.indices.filter { index in cells.allSatisfy { $0[index].text.isEmpty } }
        let layout = layout(natural, empty: cells.isEmpty ? [] : empty, width: format.width)
        return all.map { line($0, layout, format) }
    }

    private func line(_ row: [StyledText], _ layout: Layout, _ format: TextFormat) -> String {
        let cells = layout.enumerated().map { position, place -> (plain: String, painted: String) in
            let (column, cell) = (columns[place.column], row[place.column])
            let text =
                column.cut == .middle
                ? cell.text.cutInside(to: place.width, mark: format.mark)
                : cell.text.cut(to: place.width, mark: format.mark)
            let space = String(repeating: " ", count: max(0, place.width - text.columns))
            let before = column.isNumber ? space : ""
            let after = column.isNumber || position == layout.count - 1 ? "" : space
            return (before + text + after, before + format.paint(StyledText(text, cell.style)) + after)
        }
        let separator = String(repeating: " ", count: Self.gap)
        let plain = cells.map(\.plain).joined(separator: separator)
        // Even the narrowest cells may not fit.
        if let width = format.width, plain.columns > width { return plain.cut(to: width, mark: format.mark) }
        return cells.map(\.painted).joined(separator: separator)
    }

    private func layout(_ natural: [Int], empty: [Int], width: Int?) -> Layout {
        var shown = natural.indices.filter { !(columns[$0].isOptional && empty.contains($0)) }
        guard let width else { return shown.map { ($0, natural[$0]) } }
        var widths = zip(natural, columns).map { $1.cut == .nowhere ? $0 : min($0, $1.least) }
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

extension Table.Column where Row == JSON {
    static func number(_ head: String, of member: String, rank: Int? = nil) -> Self {
        .number(head, rank: rank) { $0.number(member) }
    }
}

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
