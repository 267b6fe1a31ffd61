import GRDBSQLite
import JobModel

/// One connection to the database, with the statements that were prepared on it. One thread at a time uses it.
final class SQLiteConnection {
    let path: String
    let pointer: OpaquePointer
    /// What errors of its statements count as.
    private let errors: StoreError.Code
    private var statements: [String: PreparedStatement] = [:]
    /// The first error since it was last forgotten.
    var firstFailure: StoreError?

    /// Opens the database at `path`, which is there.
    init(_ path: String, errors: StoreError.Code) throws(StoreError) {
        self.path = path
        self.errors = errors
        var opened: OpaquePointer?
        // One thread at a time uses a connection, so SQLite needs no lock of its own.
        let code = sqlite3_open_v2(path, &opened, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nil)
        guard let opened else {
            throw StoreError(errors, SQLiteFailure(code: code, message: "no memory"), database: path)
        }
        pointer = opened
        guard code == SQLITE_OK else {
            let failure = SQLiteFailure(
                code: sqlite3_extended_errcode(opened), message: String(cString: sqlite3_errmsg(opened)))
            sqlite3_close_v2(opened)
            throw StoreError(errors, failure, database: path)
        }
        sqlite3_extended_result_codes(opened, 1)
        sqlite3_busy_timeout(opened, 10_000)
    }

    deinit {
        statements = [:]
        sqlite3_close_v2(pointer)
    }

    /// The error for what the last call said, which is remembered.
    func failure() -> StoreError {
        failed(
            StoreError(
                errors,
                SQLiteFailure(
                    code: sqlite3_extended_errcode(pointer), message: String(cString: sqlite3_errmsg(pointer))),
                database: path))
    }

    /// Remembers an error.
    func failed(_ error: StoreError) -> StoreError {
        if firstFailure == nil { firstFailure = error }
        return error
    }

    /// Runs statements that give no rows.
    func execute(_ sql: String) throws(StoreError) {
        guard sqlite3_exec(pointer, sql, nil, nil, nil) == SQLITE_OK else { throw failure() }
    }

    /// A statement of its own.
    func prepare(_ sql: String) throws(StoreError) -> PreparedStatement { try PreparedStatement(sql, on: self) }

    /// The statement for `sql`, prepared once.
    func statement(_ sql: String) throws(StoreError) -> PreparedStatement {
        if let known = statements[sql] { return known }
        let statement = try prepare(sql)
        statements[sql] = statement
        return statement
    }

    /// The number that a query gives; 0 where it gives none.
    func number(_ sql: String) throws(StoreError) -> Int64 {
        let statement = try prepare(sql)
        return try statement.row { row throws(StoreError) in row.integer(0) } ?? 0
    }

    var isInTransaction: Bool { sqlite3_get_autocommit(pointer) == 0 }

    /// Writes the log into the database, as far as no reader needs it.
    func checkpoint(_ mode: Int32) throws(StoreError) {
        let code = sqlite3_wal_checkpoint_v2(pointer, "main", mode, nil, nil)
        // Another one at the same time, or a reader in the way of a complete one, is no failure.
        guard code == SQLITE_OK || code & 0xFF == SQLITE_BUSY else { throw failure() }
    }
}
