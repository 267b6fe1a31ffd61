import JobModel

/// Inserts rows, many with one statement: most of what a row costs is what a statement does before and after it.
struct RowInserts {
    /// The rows that one statement inserts, largest first; the last is 1.
    private static let sizes = [32, 8, 1]

    private let statements: [PreparedStatement]
    private let columns: Int32

    /// `verb` is `INSERT`, with what happens to a row that is there.
    init(
        _ verb: String = "INSERT", into table: String, _ columns: [String], on connection: SQLiteConnection
    ) throws(StoreError) {
        let row = "(\(columns.map { _ in "?" }.joined(separator: ",")))"
        let insert = "\(verb) INTO \(table) (\(columns.joined(separator: ","))) VALUES "
        statements = try Self.sizes.map { (size) throws(StoreError) in
            try PreparedStatement(insert + Array(repeating: row, count: size).joined(separator: ","), on: connection)
        }
        self.columns = Int32(columns.count)
    }

    /// Inserts rows; `bind` binds one of them from the parameter behind a number on.
    func insert<Row>(_ rows: [Row], _ bind: (Row, PreparedStatement, Int32) -> Void) throws(StoreError) {
        var start = 0
        for (size, statement) in zip(Self.sizes, statements) {
            while rows.count - start >= size {
                for offset in 0..<size { bind(rows[start + offset], statement, Int32(offset) * columns) }
                try statement.run()
                start += size
            }
        }
    }
}
