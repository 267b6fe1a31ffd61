import SystemPackage
import JobModel
import GRDB
import Glibc

/// Makes a database under another name and renames it when it is complete, so that there is never half a one under its
/// name.
enum NewDatabase {
    static func make(_ path: String) throws(StoreError) {
        let draft = path + ".new"
        do {
            for ending in ["", "-journal", "-wal", "-shm"] { unlink(draft + ending) }
            // SQLite gives the files beside a database the permissions that it has.
            let file = open(draft, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
            guard file >= 0 else { throw StoreError.unwritable(draft) }
            close(file)
            let queue = try DatabaseQueue(path: draft)
            defer { ClosedDatabases.keep(queue) }
            try queue.writeWithoutTransaction { connection in
                try connection.execute(sql: "PRAGMA auto_vacuum = INCREMENTAL; PRAGMA synchronous = FULL")
                try Schema.migrate(connection)
                try connection.execute(sql: "PRAGMA journal_mode = WAL")
            }
            try queue.close()
            guard rename(draft, path) == 0, StateDirectory.sync(directoryOf: path) else {
                throw StoreError.unwritable(path)
            }
        } catch {
            throw StoreError(.write, error, database: path)
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
