import GRDB
import GRDBSQLite
import Glibc
import JobModel
import SystemPackage

/// Makes a database under another name and renames it when it is complete, so that there is never half a one under its
/// name.
enum NewDatabase {
    /// Makes the database at `path`.
    static func make(_ path: String) throws(StoreError) {
        let draft = path + ".new"
        do {
            for ending in ["", "-journal", "-wal", "-shm"] { unlink(draft + ending) }
            // SQLite gives the files beside a database the permissions that it has.
            let file = open(draft, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
            guard file >= 0 else { throw StoreError.unwritable(draft) }
            close(file)
            try run(
                // A draft that is not complete is never used, so it needs no journal, and is synced once.
                """
                PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;
                \(Schema.script);
                PRAGMA journal_mode = WAL
                """, in: draft)
            guard StateDirectory.sync(draft), rename(draft, path) == 0, StateDirectory.sync(directoryOf: path) else {
                throw StoreError.unwritable(path)
            }
        } catch {
            throw StoreError(.write, error, database: path)
        }
    }

    /// Without GRDB: libdispatch would release its queue on its global pool, which wakes up every second from its first use
    /// on, and an idle daemon should sleep.
    private static func run(_ sql: String, in path: String) throws {
        var database: OpaquePointer?
        defer { sqlite3_close(database) }
        var code = sqlite3_open_v2(path, &database, SQLITE_OPEN_READWRITE, nil)
        if code == SQLITE_OK { code = sqlite3_exec(database, sql, nil, nil, nil) }
        guard code == SQLITE_OK else {
            throw DatabaseError(
                resultCode: ResultCode(rawValue: code), message: String(cString: sqlite3_errmsg(database)))
        }
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
