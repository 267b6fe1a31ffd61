import SystemPackage
import JobModel
import GRDB
import Glibc

/// Makes a database under another name and renames it when it is complete, so that there is never half a one under its
/// name.
enum NewDatabase {
    /// Makes the database at `path`; with `rows` of another one, of the present version, that nobody has open.
    static func make(_ path: String, copying rows: String? = nil) throws(StoreError) {
        let draft = path + ".new"
        do {
            removeDraft(of: path)
            // SQLite gives the files beside a database the permissions that it has.
            let file = open(draft, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
            guard file >= 0 else { throw StoreError.unwritable(draft) }
            close(file)
            let queue = try DatabaseQueue(path: draft)
            defer { ClosedDatabases.keep(queue) }
            try queue.writeWithoutTransaction { connection in
                try PageChecks.reserve(connection)
                // A page that is freed is written all the same, so that each page of the file has a checksum. Nobody goes on
                // with a draft that is not complete, so it needs no journal, and is synced once.
                try connection.execute(
                    sql: """
                        PRAGMA auto_vacuum = INCREMENTAL; PRAGMA secure_delete = ON;
                        PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;
                        """)
                try Schema.migrate(connection)
                if let rows { try copy(rows, into: connection) }
                try connection.execute(sql: "PRAGMA journal_mode = WAL")
            }
            try queue.close()
            guard StateDirectory.sync(draft), rename(draft, path) == 0, StateDirectory.sync(directoryOf: path) else {
                throw StoreError.unwritable(path)
            }
        } catch {
            throw StoreError(.write, error, database: path)
        }
    }

    static func removeDraft(of path: String) {
        for ending in ["", "-journal", "-wal", "-shm"] { unlink(path + ".new" + ending) }
    }

    /// Copies the rows of all tables, which SQLite does by whole entries where the definitions are the same, as here.
    private static func copy(_ rows: String, into connection: Database) throws {
        try connection.execute(sql: "ATTACH ? AS original", arguments: [rows])
        try connection.inTransaction(.immediate) {
            let tables = try String.fetchAll(
                connection, sql: "SELECT name FROM main.sqlite_schema WHERE type = 'table'")
            for table in tables {
                try connection.execute(
                    sql: "DELETE FROM main.\(table); INSERT INTO main.\(table) SELECT * FROM original.\(table)")
            }
            return .commit
        }
        try connection.execute(sql: "DETACH original")
    }
}

extension StoreError {
    /// The file cannot be written, for the reason that the last system call gave.
    static func unwritable(_ path: String) -> StoreError {
        StoreError(
            .write,
            "The file \(path) cannot be written (\(Errno(rawValue: errno))); check its directory and file system.",
            isLasting: isLasting(errno))
    }
}
