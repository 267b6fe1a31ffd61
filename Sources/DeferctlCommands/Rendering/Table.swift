/// Rows of cells, written in columns as wide as their widest cell.
struct Table {
    /// A column's head and its alignment.
    struct Column {
        let head: String
        let isNumber: Bool

        init(_ head: String, isNumber: Bool = false) {
            self.head = head
            self.isNumber = isNumber
        }
    }

    let columns: [Column]
    private(set) var rows: [[String]] = []

    init(_ columns: [Column]) {
        self.columns = columns
    }

    mutating func append(_ row: [String]) { rows.append(row) }

    /// The table line by line, each cut to `width` columns, with `mark` at its end, where a width is given.
    func lines(width: Int? = nil, mark: String = "…", showsHead: Bool = true) -> [String] {
        let all = (showsHead ? [columns.map(\.head)] : []) + rows
        let widths = columns.indices.map { index in all.lazy.map { $0[index].columns }.max() ?? 0 }
        return all.map { row in
            let cells = row.indices.map { index in
                if columns[index].isNumber { return row[index].aligned(to: widths[index]) }
                return index == row.count - 1 ? row[index] : row[index].padded(to: widths[index])
            }
            let line = cells.joined(separator: "  ")
            return width.map { line.cut(to: $0, mark: mark) } ?? line
        }
    }
}
