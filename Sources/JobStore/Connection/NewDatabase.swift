import Glibc
package import JobModel
import SystemPackage

/// Makes a database under another name and renames it once it is complete.
enum NewDatabase {
    /// Makes the database at `path` unless it exists.
    static func makeIfMissing(_ path: String) throws(StoreError) {
        guard access(path, F_OK) != 0, errno == ENOENT else { return }
        // SQLite never leaves a log without its database, and would drop this one.
        guard StateDirectory.size(path + "-wal") == 0 else {
            throw StoreError.damaged(path, "it is missing, but its log is there")
        }
        let draft = path + ".new"
        // SQLite gives the files beside a database the same permissions.
        try StateDirectory.createFile(draft)
        try fill(draft)
        guard StateDirectory.sync(draft), rename(draft, path) == 0, StateDirectory.sync(directoryOf: path) else {
            throw StoreError.unwritable(path)
        }
    }

    private static func fill(_ draft: String) throws(StoreError) {
        let connection = try SQLiteConnection(draft, errors: .write)
        // No daemon uses an incomplete draft, so it needs no journal, and is synced once. The first of the other settings
        // already writes.
        try connection.execute(
            """
            PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;
            PRAGMA auto_vacuum = INCREMENTAL; PRAGMA secure_delete = FAST;
            BEGIN; \(Schema.tables)
            PRAGMA application_id = \(Schema.applicationID); PRAGMA user_version = \(Schema.version); COMMIT;
            PRAGMA journal_mode = WAL
            """)
    }

    /// Throws unless the database is deferd's and of a known version.
    static func inspect(_ connection: SQLiteConnection) throws(StoreError) {
        guard try connection.number("PRAGMA application_id") == Schema.applicationID else {
            throw StoreError.damaged(connection.path, "it is of another program")
        }
        let version = try connection.number("PRAGMA user_version")
        guard version == Schema.version else { throw StoreError.otherVersion(connection.path, version) }
    }
}

extension StoreError {
    /// The file cannot be written, for the reason in `errno`.
    package static func unwritable(_ path: String) -> StoreError {
        StoreError(
            .write,
            "The file \(path) cannot be written (\(Errno(rawValue: errno))); check its directory and file system.",
            isLasting: isLasting(errno))
    }
}
