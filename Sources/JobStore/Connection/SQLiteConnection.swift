import CSQLite
package import JobModel

/// A connection to the database and its prepared statements.
///
/// It is unchecked as its owners let one thread at a time use it; any thread may interrupt it.
package final class SQLiteConnection: SQLConnection, @unchecked Sendable {
    let path: String
    let pointer: OpaquePointer
    /// The code of its errors.
    private let errors: StoreError.Code
    private(set) var statements: [String: PreparedStatement] = [:]
    /// The first error of the round.
    var firstFailure: StoreError?

    /// Opens the existing database at `path`, for reading only if `uri` names it too.
    init(_ path: String, errors: StoreError.Code, uri: String? = nil) throws(StoreError) {
        self.path = path
        self.errors = errors
        var opened: OpaquePointer?
        let access = uri == nil ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY | SQLITE_OPEN_URI
        // One thread at a time uses a connection, so SQLite needs no lock of its own.
        let code = sqlite3_open_v2(uri ?? path, &opened, access | SQLITE_OPEN_NOMUTEX, nil)
        guard let opened else {
            throw StoreError(errors, SQLiteFailure(code: code, description: "no memory"), database: path)
        }
        pointer = opened
        guard code == SQLITE_OK else { throw failure() }
        sqlite3_busy_timeout(opened, 10_000)
    }

    deinit {
        statements = [:]
        sqlite3_close_v2(pointer)
    }

    /// The error of the last call, which it remembers.
    func failure() -> StoreError {
        let failure = SQLiteFailure(
            code: sqlite3_errcode(pointer), description: String(cString: sqlite3_errmsg(pointer)))
        return failed(StoreError(errors, failure, database: path))
    }

    func failed(_ error: StoreError) -> StoreError {
        if firstFailure == nil { firstFailure = error }
        return error
    }

    /// Runs statements that return no rows.
    func execute(_ sql: String) throws(StoreError) {
        guard sqlite3_exec(pointer, sql, nil, nil, nil) == SQLITE_OK else { throw failure() }
    }

    private static let mostStatements = 256

    /// The statement for `sql`, prepared once, with these values bound to its parameters.
    func statement(_ sql: String, _ values: [(any Bindable)?] = []) throws(StoreError) -> PreparedStatement {
        let known = statements[sql]
        let statement = if let known { known } else { try PreparedStatement(sql, on: self) }
        if known == nil {
            // Filters of lists combine freely.
            if statements.count >= Self.mostStatements { statements = [:] }
            statements[sql] = statement
        }
        statement.bind(values)
        return statement
    }

    package func rows<Value>(
        _ sql: String, _ values: [(any Bindable)?], atMost limit: Int, _ read: (PreparedStatement) -> Value?
    ) throws(StoreError) -> [Value] {
        var found: [Value] = []
        guard limit > 0 else { return found }
        try forEach(sql, values) { row in
            if let value = read(row) { found.append(value) }
            return found.count < limit
        }
        return found
    }

    /// Passes the rows of a query to `body` until it returns false.
    func forEach(
        _ sql: String, _ values: [(any Bindable)?] = [], _ body: (PreparedStatement) throws(StoreError) -> Bool
    ) throws(StoreError) {
        let select = try statement(sql, values)
        defer { select.reset() }
        while try select.step(), try body(select) {}
    }

    /// The number in the first row of a query; 0 if there is none.
    func number(_ sql: String) throws(StoreError) -> Int64 { try statement(sql).row { $0.integer(0) } ?? 0 }

    /// All numbers in order, of a query for the next one above ?1, which takes one step in an index.
    func distinct(_ sql: String) throws(StoreError) -> [Int64] {
        var found: [Int64] = []
        while let next = try statement(sql, [found.last ?? -1]).row({ $0.optionalInteger(0) }) { found.append(next) }
        return found
    }

    var isInTransaction: Bool { sqlite3_get_autocommit(pointer) == 0 }

    /// Writes the log into the database, up to the oldest snapshot that a reader uses.
    func checkpoint(_ mode: Int32) throws(StoreError) {
        let code = sqlite3_wal_checkpoint_v2(pointer, "main", mode, nil, nil)
        // It is busy if another checkpoint runs, or if a reader prevents a complete one.
        guard code == SQLITE_OK || code == SQLITE_BUSY else { throw failure() }
    }
}
