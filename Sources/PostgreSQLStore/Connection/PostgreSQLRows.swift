import CPostgreSQL
import JobModel
import JobStore

/// The rows of a result in binary form.
final class PostgreSQLRows {
    fileprivate let pointer: OpaquePointer
    let count: Int32

    /// Takes over a result.
    init(_ pointer: OpaquePointer) {
        self.pointer = pointer
        count = PQntuples(pointer)
    }

    deinit { PQclear(pointer) }

    subscript(row: Int32) -> PostgreSQLRow { PostgreSQLRow(rows: self, row: row) }

    var first: PostgreSQLRow? { count > 0 ? self[0] : nil }

    /// What `read` makes of each row.
    func map<Value>(_ read: (PostgreSQLRow) -> Value?) -> [Value] { (0..<count).compactMap { read(self[$0]) } }

    /// The number in the first row; nil where there is none.
    var number: Int64? { first?.optionalInteger(0) }
    var numbers: [Int64] { (0..<count).map { self[$0].integer(0) } }
}

/// One row.
package struct PostgreSQLRow: StoredColumns {
    fileprivate let rows: PostgreSQLRows
    fileprivate let row: Int32

    package func isNull(_ column: Int32) -> Bool { PQgetisnull(rows.pointer, row, column) == 1 }

    /// A number of any width; 0 for NULL.
    package func integer(_ column: Int32) -> Int64 {
        withBytes(column) { bytes in
            guard let first = bytes.first else { return 0 }
            return bytes.dropFirst().reduce(Int64(Int8(bitPattern: first))) { $0 << 8 | Int64($1) }
        }
    }

    package func withBytes<Value, Failure>(
        _ column: Int32, _ read: (UnsafeRawBufferPointer) throws(Failure) -> Value
    ) throws(Failure) -> Value {
        let count = Int(PQgetlength(rows.pointer, row, column))
        return try read(UnsafeRawBufferPointer(start: PQgetvalue(rows.pointer, row, column), count: count))
    }
}
