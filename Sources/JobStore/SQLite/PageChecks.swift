import CSQLite
import GRDB
import GRDBSQLite

/// Checksums of the database's pages: a byte that a disk or a memory changed is an error, never another job.
///
/// SQLite reads what stands in its file and believes it. Here each page reserves 8 bytes at its end, where `checks.c`
/// puts a checksum whenever a page is written into the file, and looks at it whenever one is read. The log is checked as
/// a whole at every start (``WriteAheadLog``). What cannot be seen is a page of which the disk gives back an older state.
enum PageChecks {
    /// The bytes that a page reserves.
    static let reserved = 8

    /// Has a database that is about to be made have checksums.
    static func reserve(_ connection: Database) throws {
        var bytes = Int32(reserved)
        let code = sqlite3_file_control(connection.sqliteConnection, "main", SQLITE_FCNTL_RESERVE_BYTES, &bytes)
        guard code == SQLITE_OK else { throw DatabaseError(resultCode: ResultCode(rawValue: code)) }
        try expect(connection)
    }

    /// Has the pages of a database checked, whatever its header says by now.
    static func expect(_ connection: Database) throws {
        guard let open = connection.sqliteConnection, deferd_expect_checks(open) != 0 else {
            throw DatabaseError(resultCode: .SQLITE_MISUSE, message: "its pages cannot be checked")
        }
    }

    /// Runs `body` while pages may be read that have nothing in them.
    ///
    /// A database's file is longer than what is used of it (`Room`). Where a new table takes the page of another one that
    /// is new as well, and was moved for it, SQLite reads that page from the file, where nothing was written yet.
    static func allowingEmptyPages(in connection: Database, _ body: () throws -> Void) rethrows {
        guard let open = connection.sqliteConnection else { return try body() }
        deferd_allow_empty_pages(open, 1)
        defer { deferd_allow_empty_pages(open, 0) }
        try body()
    }

    /// Whether the pages in the database's file have checksums.
    static func areThere(in connection: Database) -> Bool {
        connection.sqliteConnection.map { deferd_has_checks($0) != 0 } ?? false
    }
}
