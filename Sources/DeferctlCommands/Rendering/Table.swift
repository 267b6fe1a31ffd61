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
            self.head = head
            self.isNumber = isNumber
            self.cut = cut
            self.least = least
            self.rank = rank
        }
    }

    /// The spaces between two columns.
    private static let gap = 2

    let columns: [Column]
    private(set) var rows: [[StyledText]] = []

    init(_ columns: [Column]) {
        self.columns = columns
    }

    mutating func append(_ row: [StyledText]) { rows.append(row) }

    mutating func append(_ row: [String]) { rows.append(row.map { StyledText($0) }) }

    /// The table line by line, each within `width` columns where a width is given; what was cut is marked by `mark`.
    func lines(
        width: Int? = nil, mark: String = "…", showsHead: Bool = true, palette: Palette = .none
    ) -> [String] {
        let all = (showsHead ? [columns.map { StyledText($0.head, .heading) }] : []) + rows
        let natural = columns.indices.map { index in all.lazy.map { $0[index].text.columns }.max() ?? 0 }
        let empty = columns.indices.filter { index in rows.allSatisfy { $0[index].text.isEmpty } }
        let layout = layout(natural, empty: rows.isEmpty ? [] : empty, width: width)
        return all.map { line($0, layout, width: width, mark: mark, palette: palette) }
    }

    private func line(
        _ row: [StyledText], _ layout: [(column: Int, width: Int)], width: Int?, mark: String, palette: Palette
    ) -> String {
        var (plain, painted) = ("", "")
        for (position, (index, cellWidth)) in layout.enumerated() {
            let cell = row[index]
            let text =
                columns[index].cut == .middle
                ? cell.text.cutInside(to: cellWidth, mark: mark) : cell.text.cut(to: cellWidth, mark: mark)
            let space = String(repeating: " ", count: max(0, cellWidth - text.columns))
            let (before, after) =
                columns[index].isNumber ? (space, "") : ("", position == layout.count - 1 ? "" : space)
            let separator = position == 0 ? "" : String(repeating: " ", count: Self.gap)
            plain += separator + before + text + after
            painted += separator + before + palette.paint(text, cell.style) + after
        }
        // Where not even the least of it fits.
        if let width, plain.columns > width { return plain.cut(to: width, mark: mark) }
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
