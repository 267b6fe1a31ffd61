import Dispatch
import GRDB
import Glibc
package import JobModel
import Synchronization

/// Copies of the state while jobs run.
///
/// SQLite copies the pages inside one read transaction, so that the copy is of one moment and nothing waits for it; what is
/// written meanwhile stays in the log until it is done. Bodies in files are put into a table of the copy (``BackupBodies``).
extension SQLiteStore {
    /// Bytes that have to stay free on the disk.
    private static let mostLeft: Int64 = 64 << 20
    /// The pages that are copied before it is looked whether the daemon ends.
    private static let portion: CInt = 1_024

    package func backUp() async throws(StoreError) -> StoreBackup {
        guard isBackingUp.set() else {
            throw StoreError(.locked, "Another backup is being made; wait for that to end.")
        }
        let result = await withCheckedContinuation {
            (continuation: CheckedContinuation<Result<StoreBackup, StoreError>, Never>) in
            // The pool must not be closed meanwhile.
            let isOpen = isClosed.withLock { isClosed in
                if !isClosed { reads.enter() }
                return !isClosed
            }
            backups.async { [self] in
                let result = Result { () throws(StoreError) in
                    guard isOpen else { throw .closed }
                    return try makeBackup()
                }
                if isOpen { reads.leave() }
                if case .failure = result { isBackingUp.clear() }
                // Handed over, so that it is gone when the caller lets it go, and another can be made.
                continuation.resume(returning: consume result)
            }
        }
        return try result.get()
    }

    private func makeBackup() throws(StoreError) -> StoreBackup {
        let path = directory.backup
        do {
            Self.removeBackup(path)
            try checkRoom()
            let file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
            guard file >= 0 else { throw StoreError.unwritable(path) }
            Glibc.close(file)
            let queue = try DatabaseQueue(path: path)
            try pool.backup(to: queue, pagesPerStep: Self.portion) { [self] _ in try checkOpen() }
            try queue.writeWithoutTransaction { connection in
                // A file of its own, without a log. It is written again where it is kept.
                try connection.execute(sql: "PRAGMA journal_mode = DELETE; PRAGMA synchronous = OFF")
                try connection.inTransaction(.immediate) {
                    try BackupBodies.insert(from: directory.bodies, into: connection, checkOpen)
                    return .commit
                }
            }
            try queue.close()
            return try StoreBackup(takingOver: path) { [isBackingUp] in isBackingUp.clear() }
        } catch {
            Self.removeBackup(path)
            throw StoreError(.write, error, database: path)
        }
    }

    /// Ends a backup or a check where the daemon ends.
    func checkOpen() throws {
        if isClosed.withLock(\.self) { throw StoreError.closed }
    }

    /// Jobs go on being stored while there is a copy of them.
    private func checkRoom() throws {
        let needed = try pool.read { connection in
            let pages = try Int64.fetchOne(connection, sql: "PRAGMA page_count") ?? 0
            let size = try Int64.fetchOne(connection, sql: "PRAGMA page_size") ?? 0
            return try BackupBodies.size(in: connection).saturatingAdding(pages * size)
        }
        var disk = statvfs()
        guard statvfs(directory.path, &disk) == 0 else { throw StoreError.unwritable(directory.path) }
        let free = Int64(clamping: disk.f_bavail).multipliedReportingOverflow(by: Int64(clamping: disk.f_frsize))
        guard !free.overflow, free.partialValue < needed.saturatingAdding(Self.mostLeft) else { return }
        throw StoreError(
            .write,
            "A backup takes \(needed) bytes for a while in \(directory.path), and \(free.partialValue) are free there; "
                + "make room and try again.")
    }

    /// Removes what a daemon that was killed left.
    static func removeBackup(_ path: String) {
        for ending in ["", "-journal", "-wal", "-shm"] { unlink(path + ending) }
    }
}
