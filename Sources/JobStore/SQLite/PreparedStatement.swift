import GRDB
import GRDBSQLite
import JobModel

/// A prepared statement that is bound, run and read without boxing its values; not to leave its connection's queue.
///
/// In the row `rows of the store` of `make bench-libraries` reading takes 0.89 of the time that GRDB's rows take.
struct PreparedStatement {
    /// Keeps the statement prepared.
    private let statement: GRDB.Statement
    private let pointer: OpaquePointer

    init(_ statement: GRDB.Statement) {
        self.statement = statement
        pointer = statement.sqliteStatement
    }

    /// The statement for `sql`, prepared once for each connection.
    init(_ sql: String, on connection: Database) throws {
        self.init(try connection.cachedStatement(sql: sql))
    }

    // MARK: Binding

    func bind(_ value: Int64, at index: Int32) {
        sqlite3_bind_int64(pointer, index, value)
    }

    func bind(_ value: Int, at index: Int32) {
        sqlite3_bind_int64(pointer, index, Int64(value))
    }

    func bind(_ time: Timestamp?, at index: Int32) {
        if let time { sqlite3_bind_int64(pointer, index, time.milliseconds) }
    }

    func bind(_ text: String?, at index: Int32) {
        guard var text else { return }
        text.withUTF8 { bind(UnsafeRawBufferPointer($0), at: index) }
    }

    /// Binds text in UTF-8.
    func bind(utf8 text: [UInt8]?, at index: Int32) {
        text?.withUnsafeBytes { bind($0, at: index) }
    }

    func bind(bytes: [UInt8], at index: Int32) {
        bytes.withUnsafeBytes {
            _ = sqlite3_bind_blob64(pointer, index, $0.baseAddress, UInt64($0.count), Self.transient)
        }
    }

    private func bind(_ text: UnsafeRawBufferPointer, at index: Int32) {
        // SQLite takes a null pointer for NULL, so an empty text needs an address to point to.
        withUnsafePointer(to: 0 as CChar) { empty in
            let start = text.baseAddress?.assumingMemoryBound(to: CChar.self) ?? empty
            sqlite3_bind_text64(pointer, index, start, UInt64(text.count), Self.transient, UInt8(SQLITE_UTF8))
        }
    }

    /// Binds text without a copy of it by SQLite: `texts` keeps it, until it is emptied after the statement has run.
    func bind(_ text: String?, at index: Int32, keptIn texts: BoundTexts) {
        guard var text else { return }
        text.withUTF8 { bind(UnsafeRawBufferPointer($0), at: index, keptIn: texts) }
    }

    /// Binds text in UTF-8 without a copy of it by SQLite.
    func bind(utf8 text: [UInt8]?, at index: Int32, keptIn texts: BoundTexts) {
        text?.withUnsafeBytes { bind($0, at: index, keptIn: texts) }
    }

    private func bind(_ text: UnsafeRawBufferPointer, at index: Int32, keptIn texts: BoundTexts) {
        guard let kept = texts.keep(text) else { return bind(text, at: index) }
        sqlite3_bind_text64(
            pointer, index, kept.assumingMemoryBound(to: CChar.self), UInt64(text.count), nil, UInt8(SQLITE_UTF8))
    }

    /// Tells SQLite to copy what is bound; C writes it as a cast that Swift does not import.
    private static var transient: sqlite3_destructor_type { unsafeBitCast(-1, to: sqlite3_destructor_type.self) }

    // MARK: Running

    /// Goes to the next row; false at the end.
    func step() throws -> Bool {
        switch sqlite3_step(pointer) {
        case SQLITE_ROW: return true
        case SQLITE_DONE: return false
        case let code:
            throw DatabaseError(
                resultCode: ResultCode(rawValue: code),
                message: String(cString: sqlite3_errmsg(sqlite3_db_handle(pointer))), sql: statement.sql)
        }
    }

    /// Makes the statement ready to be bound again, all its parameters NULL.
    func reset() {
        sqlite3_reset(pointer)
        sqlite3_clear_bindings(pointer)
    }

    /// Runs a statement that gives no rows; true where it changed any.
    @discardableResult
    func run() throws -> Bool {
        defer { reset() }
        while try step() {}
        return sqlite3_changes(sqlite3_db_handle(pointer)) > 0
    }

    /// What `read` makes of each row, at most `limit` of them.
    func rows<Value>(atMost limit: Int = .max, _ read: (PreparedStatement) throws -> Value?) throws -> [Value] {
        defer { reset() }
        var values: [Value] = []
        while values.count < limit, try step() {
            if let value = try read(self) { values.append(value) }
        }
        return values
    }

    /// What `read` makes of the first row, or nil where there is none.
    func row<Value>(_ read: (PreparedStatement) throws -> Value?) throws -> Value? {
        defer { reset() }
        return try step() ? try read(self) : nil
    }

    // MARK: Columns

    func isNull(_ column: Int32) -> Bool { sqlite3_column_type(pointer, column) == SQLITE_NULL }

    func integer(_ column: Int32) -> Int64 { sqlite3_column_int64(pointer, column) }

    func optionalInteger(_ column: Int32) -> Int64? { isNull(column) ? nil : integer(column) }

    func time(_ column: Int32) -> Timestamp? { optionalInteger(column).map(Timestamp.init(milliseconds:)) }

    func text(_ column: Int32) -> String? { utf8(column) { String(decoding: $0, as: UTF8.self) } }

    /// Reads the text of a column without a copy, unless it is NULL.
    func utf8<Value>(_ column: Int32, _ read: (UnsafeRawBufferPointer) throws -> Value) rethrows -> Value? {
        guard let start = sqlite3_column_text(pointer, column) else { return nil }
        return try read(
            UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(pointer, column))))
    }

    /// Reads bytes; nil where there are none.
    func bytes<Value>(_ column: Int32, _ read: (UnsafeRawBufferPointer) throws -> Value) rethrows -> Value? {
        guard let start = sqlite3_column_blob(pointer, column) else { return nil }
        return try read(
            UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(pointer, column))))
    }
}
