import JobModel
import GRDB
import Glibc

extension StoreError {
    /// The store's error for a failure of SQLite, or of our own decoding.
    init(_ code: Code, _ error: any Error, database path: String) {
        switch error {
        case let error as StoreError: self = error
        case let error as DatabaseError: self.init(code, error, path)
        default: self.init(code, "The database \(path) could not be used: \(error).", underlying: error)
        }
    }

    private init(_ code: Code, _ error: DatabaseError, _ path: String) {
        let reason = error.message ?? "\(error.resultCode)"
        switch error.resultCode {
        case .SQLITE_CORRUPT, .SQLITE_NOTADB: self = .damaged(path, reason, underlying: error)
        case .SQLITE_FULL:
            self.init(
                code, "The database \(path) has no room to grow; free space on its file system.", underlying: error)
        default:
            let failed = code == .read ? "could not be read" : "could not be written"
            self.init(
                code, "The database \(path) \(failed) (\(reason)); check its file system and permissions.",
                underlying: error,
                isLasting: [.SQLITE_PERM, .SQLITE_READONLY, .SQLITE_AUTH].contains(error.resultCode))
        }
    }

    /// The database is damaged, for a reason that is a clause.
    static func damaged(_ path: String, _ reason: String, underlying: (any Error)? = nil) -> StoreError {
        StoreError(
            .damaged,
            "The database \(path) is damaged: \(reason). Restore it and the files named \(path)-* from a backup, or move "
                + "them all away to begin anew.",
            underlying: underlying)
    }

    /// Whether a system call failed because of the path or its permissions, and not because of the state of the disk.
    static func isLasting(_ number: Int32) -> Bool {
        [EACCES, EPERM, ENOTDIR, EISDIR, ELOOP, ENAMETOOLONG, ENOENT, EINVAL].contains(number)
    }

    static var closed: StoreError { StoreError(.closed, "The job store is closed; start deferd again.") }
}
