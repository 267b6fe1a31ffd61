import JobModel
import JobStore

/// A value of a parameter in PostgreSQL's binary form.
struct PostgreSQLParameter {
    /// The types that deferd's columns have.
    enum Kind: UInt32 {
        case integer = 20
        case text = 25
        case bytes = 17

        /// The type of an array of them.
        var array: UInt32 {
            switch self {
            case .integer: 1016
            case .text: 1009
            case .bytes: 1001
            }
        }

        var name: String {
            switch self {
            case .integer: "bigint"
            case .text: "text"
            case .bytes: "bytea"
            }
        }
    }

    /// The number of the type; 0 leaves it to the server.
    var type: UInt32 = 0
    /// Nil for NULL.
    var bytes: [UInt8]?

    /// Numbers as one array.
    static func array(_ values: [Int64]) -> PostgreSQLParameter {
        let column = PostgreSQLColumn(.integer)
        for value in values { column.append(value) }
        return column.parameter
    }
}

extension PostgreSQLParameter: Bindable {
    func bind(to parameters: some Bindings, at index: Int32) {
        // Only statements of PostgreSQL have arrays.
        (parameters as? PostgreSQLParameters)?.values[Int(index) - 1] = self
    }
}

/// The values of a statement's parameters.
final class PostgreSQLParameters: Bindings {
    fileprivate(set) var values: [PostgreSQLParameter]

    init(_ values: [(any Bindable)?]) {
        self.values = Array(repeating: PostgreSQLParameter(), count: values.count)
        for (index, value) in values.enumerated() { value?.bind(to: self, at: Int32(index) + 1) }
    }

    private func set(_ kind: PostgreSQLParameter.Kind?, _ bytes: [UInt8]?, _ index: Int32) {
        if let bytes { values[Int(index) - 1] = PostgreSQLParameter(type: kind?.rawValue ?? 0, bytes: bytes) }
    }

    func bind(_ integer: Int64?, at index: Int32) { set(.integer, integer?.bigEndianBytes, index) }
    /// The server knows whether it is `text` or `bytea`, which have the same form.
    func bind(_ text: String?, at index: Int32) { set(nil, text.map { Array($0.utf8) }, index) }
    func bind(_ bytes: [UInt8]?, at index: Int32) { set(.bytes, bytes, index) }
}

/// The values of many rows in one column, as an array that `unnest` makes rows of.
final class PostgreSQLColumn {
    let kind: PostgreSQLParameter.Kind
    private(set) var count = 0
    private var elements: [UInt8] = []
    private var hasNull = false

    init(_ kind: PostgreSQLParameter.Kind) { self.kind = kind }

    func append(_ value: Int64) {
        append(length: 8)
        withUnsafeBytes(of: value.bigEndian) { elements.append(contentsOf: $0) }
    }

    func append(_ bytes: some Collection<UInt8>) {
        append(length: Int32(bytes.count))
        elements.append(contentsOf: bytes)
    }

    func appendNull() {
        append(length: -1)
        hasNull = true
    }

    private func append(length: Int32) {
        withUnsafeBytes(of: length.bigEndian) { elements.append(contentsOf: $0) }
        count += 1
    }

    /// The form of an array of one dimension, or of none if it is empty.
    var parameter: PostgreSQLParameter {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(20 + elements.count)
        let head: [UInt32] = [count == 0 ? 0 : 1, hasNull ? 1 : 0, kind.rawValue]
        for number in head + (count == 0 ? [] : [UInt32(count), 1]) {
            withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) }
        }
        bytes += elements
        return PostgreSQLParameter(type: kind.array, bytes: bytes)
    }
}

/// Rows for one statement, column by column.
final class PostgreSQLRowArrays: Bindings {
    let columns: [PostgreSQLColumn]
    private(set) var count = 0

    init(_ kinds: [PostgreSQLParameter.Kind]) { columns = kinds.map(PostgreSQLColumn.init) }

    convenience init(_ kinds: [PostgreSQLParameter.Kind], _ rows: [[(any Bindable)?]]) {
        self.init(kinds)
        for row in rows {
            for (index, value) in row.enumerated() { value?.bind(to: self, at: Int32(index) + 1) }
            endRow()
        }
    }

    func bind(_ integer: Int64?, at index: Int32) { if let integer { columns[Int(index) - 1].append(integer) } }
    func bind(_ text: String?, at index: Int32) { if let text { columns[Int(index) - 1].append(text.utf8) } }
    func bind(_ bytes: [UInt8]?, at index: Int32) { if let bytes { columns[Int(index) - 1].append(bytes) } }

    /// What the row did not bind is NULL.
    func endRow() {
        count += 1
        for column in columns where column.count < count { column.appendNull() }
    }

    /// The rows as a table in SQL.
    var table: String {
        "unnest(\(columns.enumerated().map { "$\($0 + 1)::\($1.kind.name)[]" }.joined(separator: ", ")))"
    }

    var parameters: [(any Bindable)?] { columns.map { $0.parameter } }
}

extension Int64 {
    var bigEndianBytes: [UInt8] { withUnsafeBytes(of: bigEndian) { Array($0) } }
}
