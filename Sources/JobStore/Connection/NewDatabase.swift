import Glibc
import JobModel
import SystemPackage

/// Makes a database under another name and renames it when it is complete, so that there is never half a one under its
/// name.
enum NewDatabase {
    /// Makes the one at `path` where there is none.
    static func makeIfMissing(_ path: String) throws(StoreError) {
        guard access(path, F_OK) != 0, errno == ENOENT else { return }
        // SQLite never leaves a log without its database, and would take it for one of the new database.
        guard StateDirectory.size(path + "-wal") == 0 else {
            throw StoreError.damaged(path, "it is missing, but its log is there")
        }
        let draft = path + ".new"
        for ending in ["", "-journal", "-wal", "-shm"] { unlink(draft + ending) }
        // SQLite gives the files beside a database the permissions that it has.
        let file = open(draft, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw StoreError.unwritable(draft) }
        close(file)
        try fill(draft)
        guard StateDirectory.sync(draft), rename(draft, path) == 0, StateDirectory.sync(directoryOf: path) else {
            throw StoreError.unwritable(path)
        }
    }

    private static func fill(_ draft: String) throws(StoreError) {
        let connection = try SQLiteConnection(draft, errors: .write)
        // No daemon goes on with a draft that is not complete, so it needs no journal, and is synced once.
        try connection.execute(
            """
            PRAGMA auto_vacuum = INCREMENTAL; PRAGMA secure_delete = FAST;
            PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;
            BEGIN; \(Schema.tables)
            PRAGMA application_id = \(Schema.applicationID); PRAGMA user_version = \(Schema.version); COMMIT;
            PRAGMA journal_mode = WAL
            """)
    }

    /// Looks whether the database is one of deferd, of a version that it knows.
    static func inspect(_ connection: SQLiteConnection) throws(StoreError) {
        guard try connection.number("PRAGMA application_id") == Schema.applicationID else {
            throw StoreError.damaged(connection.path, "it is of another program")
        }
        let version = try connection.number("PRAGMA user_version")
        guard version == Schema.version else { throw StoreError.otherVersion(connection.path, version) }
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
