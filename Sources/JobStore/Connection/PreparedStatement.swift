import CSQLite
import JobModel

/// A prepared statement that is bound, run and read without boxing its values.
package final class PreparedStatement: StoredColumns {
    private let pointer: OpaquePointer
    private unowned let connection: SQLiteConnection

    init(_ sql: String, on connection: SQLiteConnection) throws(StoreError) {
        self.connection = connection
        var prepared: OpaquePointer?
        let flags = UInt32(SQLITE_PREPARE_PERSISTENT)
        guard sqlite3_prepare_v3(connection.pointer, sql, -1, flags, &prepared, nil) == SQLITE_OK, let prepared else {
            throw connection.failure()
        }
        pointer = prepared
    }

    deinit { sqlite3_finalize(pointer) }

    // MARK: Binding

    /// Binds values to the parameters from the first on; nil is NULL.
    func bind(_ values: [(any Bindable)?]) {
        for (index, value) in values.enumerated() { value?.bind(to: self, at: Int32(index) + 1) }
    }

    /// Tells SQLite to copy what is bound; C writes it as a cast that Swift does not import.
    private static var copied: sqlite3_destructor_type { unsafeBitCast(-1, to: sqlite3_destructor_type.self) }

    // MARK: Running

    /// Goes to the next row; false at the end.
    func step() throws(StoreError) -> Bool {
        switch sqlite3_step(pointer) {
        case SQLITE_ROW: return true
        case SQLITE_DONE: return false
        default: throw connection.failure()
        }
    }

    /// Makes the statement ready to be bound again, all its parameters NULL.
    func reset() {
        sqlite3_reset(pointer)
        sqlite3_clear_bindings(pointer)
    }

    /// Runs a statement that gives no rows; true where it changed any.
    @discardableResult
    func run() throws(StoreError) -> Bool {
        defer { reset() }
        while try step() {}
        return sqlite3_changes(connection.pointer) > 0
    }

    /// What `read` makes of the first row, or nil where there is none.
    func row<Value>(_ read: (PreparedStatement) -> Value?) throws(StoreError) -> Value? {
        defer { reset() }
        return try step() ? read(self) : nil
    }

    // MARK: Columns

    package func isNull(_ column: Int32) -> Bool { sqlite3_column_type(pointer, column) == SQLITE_NULL }

    package func integer(_ column: Int32) -> Int64 { sqlite3_column_int64(pointer, column) }

    package func withBytes<Value, Failure>(
        _ column: Int32, _ read: (UnsafeRawBufferPointer) throws(Failure) -> Value
    ) throws(Failure) -> Value {
        let start = sqlite3_column_blob(pointer, column)
        return try read(UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(pointer, column))))
    }
}

extension PreparedStatement: Bindings {
    package func bind(_ integer: Int64?, at index: Int32) {
        if let integer { sqlite3_bind_int64(pointer, index, integer) }
    }

    package func bind(_ text: String?, at index: Int32) {
        guard let text else { return }
        sqlite3_bind_text64(pointer, index, text, UInt64(text.utf8.count), Self.copied, UInt8(SQLITE_UTF8))
    }

    package func bind(_ bytes: [UInt8]?, at index: Int32) {
        guard let bytes else { return }
        // SQLite takes a null pointer for NULL.
        if bytes.isEmpty { return _ = sqlite3_bind_zeroblob(pointer, index, 0) }
        sqlite3_bind_blob64(pointer, index, bytes, UInt64(bytes.count), Self.copied)
    }
}
