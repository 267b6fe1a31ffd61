import CSQLite
import JobModel

/// One connection to the database, with the statements that were prepared on it. One thread at a time uses it.
final class SQLiteConnection {
    let path: String
    let pointer: OpaquePointer
    /// What errors of its statements count as.
    private let errors: StoreError.Code
    private(set) var statements: [String: PreparedStatement] = [:]
    /// The first error since it was last forgotten.
    var firstFailure: StoreError?

    /// Opens the database at `path`, which is there.
    init(_ path: String, errors: StoreError.Code, isReadOnly: Bool = false) throws(StoreError) {
        self.path = path
        self.errors = errors
        var opened: OpaquePointer?
        let access = isReadOnly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE
        // One thread at a time uses a connection, so SQLite needs no lock of its own.
        let code = sqlite3_open_v2(path, &opened, access | SQLITE_OPEN_NOMUTEX, nil)
        guard let opened else {
            throw StoreError(errors, SQLiteFailure(code: code, message: "no memory"), database: path)
        }
        pointer = opened
        guard code == SQLITE_OK else {
            let failure = SQLiteFailure(of: opened)
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
    func failure() -> StoreError { failed(StoreError(errors, SQLiteFailure(of: pointer), database: path)) }

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

    /// The statement for `sql`, prepared once, with these values bound to its parameters.
    func statement(_ sql: String, _ values: (any Bindable)?...) throws(StoreError) -> PreparedStatement {
        try statement(sql, values)
    }

    func statement(_ sql: String, _ values: [(any Bindable)?]) throws(StoreError) -> PreparedStatement {
        let known = statements[sql]
        let statement = if let known { known } else { try prepare(sql) }
        if known == nil { statements[sql] = statement }
        statement.bind(values)
        return statement
    }

    /// The number that a query gives; 0 where it gives none.
    func number(_ sql: String) throws(StoreError) -> Int64 { try prepare(sql).number() ?? 0 }

    /// The numbers that a query for the next one above ?1 gives, in order, each by one step in an index.
    func distinct(_ sql: String) throws(StoreError) -> [Int64] {
        var found: [Int64] = []
        while let next = try statement(sql, found.last ?? -1).number() { found.append(next) }
        return found
    }

    var isInTransaction: Bool { sqlite3_get_autocommit(pointer) == 0 }

    /// Writes the log into the database, as far as no reader needs it.
    func checkpoint(_ mode: Int32) throws(StoreError) {
        let code = sqlite3_wal_checkpoint_v2(pointer, "main", mode, nil, nil)
        // Another one at the same time, or a reader in the way of a complete one, is no failure.
        guard code == SQLITE_OK || code & 0xFF == SQLITE_BUSY else { throw failure() }
    }
}
