import CSQLite
import Glibc
package import JobModel
import SystemPackage

/// The error of a call of SQLite.
struct SQLiteFailure: Error, CustomStringConvertible {
    /// A result code without its extension.
    let code: Int32
    let description: String
}

extension StoreError {
    /// The store's error for a failure of SQLite at the database `path`.
    init(_ code: Code, _ failure: SQLiteFailure, database path: String) {
        switch failure.code {
        case SQLITE_CORRUPT, SQLITE_NOTADB: self = .damaged(path, failure.description, underlying: failure)
        case SQLITE_FULL:
            self.init(
                code, "The database \(path) has no room to grow; free space on its file system.", underlying: failure)
        default:
            let failed = code == .read ? "could not be read" : "could not be written"
            self.init(
                code, "The database \(path) \(failed) (\(failure.description)); check its file system and permissions.",
                underlying: failure,
                isLasting: [SQLITE_PERM, SQLITE_READONLY, SQLITE_AUTH].contains(failure.code))
        }
    }

    /// `reason` is a clause.
    static func damaged(_ path: String, _ reason: String, underlying: (any Error)? = nil) -> StoreError {
        StoreError(
            .damaged,
            "The database \(path) is damaged: \(reason). It was left as it is; restore it and the files named "
                + "\(path)-* from a backup, or move them all away to start with an empty state.",
            underlying: underlying)
    }

    /// The file cannot be written, for the reason in `errno`.
    package static func unwritable(_ path: String) -> StoreError {
        StoreError(
            .write,
            "The file \(path) cannot be written (\(Errno(rawValue: errno))); check its directory and file system.",
            isLasting: isLasting(errno))
    }

    static func otherVersion(_ path: String, _ version: Int64) -> StoreError {
        StoreError(
            .otherVersion,
            "The database \(path) has version \(version), but this deferd reads version \(Schema.version); start the "
                + "deferd that made it, or move it and the files named \(path)-* away to start with an empty state.",
            isLasting: true)
    }

    package static var closed: StoreError { StoreError(.closed, "The job store is closed; start deferd again.") }

    /// Whether a system call failed because of the path or its permissions, not of the state of the disk.
    static func isLasting(_ number: Int32) -> Bool {
        [EACCES, EPERM, ENOTDIR, EISDIR, ELOOP, ENAMETOOLONG, ENOENT, EINVAL].contains(number)
    }

    private var failure: SQLiteFailure? { underlying as? SQLiteFailure }

    /// Whether the disk, a quota or a limit may leave no room.
    var isLackOfRoom: Bool { failure.map { [SQLITE_FULL, SQLITE_IOERR].contains($0.code) } ?? false }

    /// Whether a commit that failed with this error may have left complete frames in the log.
    var leavesFateUnknown: Bool { failure?.code == SQLITE_IOERR }
}
