import Dispatch
import CSQLite
import Glibc
package import JobModel

/// Copies of the state while jobs run.
///
/// SQLite copies the pages inside one snapshot, so that the copy is of one moment and nothing waits for it; what is
/// written meanwhile stays in the log until it is done.
enum StateCopy {
    /// Bytes that have to stay free on the disk.
    private static let leastLeft: Int64 = 64 << 20
    /// The pages that are copied before it is looked whether the daemon ends.
    private static let portion: Int32 = 1_024

    static func make(_ directory: StateDirectory, _ pool: ReadingPool) throws(StoreError) -> String {
        let path = directory.backup
        remove(path)
        do {
            try pool.readForLong { source throws(StoreError) in
                try checkRoom(directory.path, source)
                let file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
                guard file >= 0 else { throw StoreError.unwritable(path) }
                close(file)
                let copy = try SQLiteConnection(path, errors: .write)
                try copyPages(source, copy, pool.checkOpen)
                // A file of its own, without a log. It is written again where it is kept.
                try copy.execute("PRAGMA journal_mode = DELETE; PRAGMA synchronous = OFF; BEGIN")
                try CopiedBlobs.putIn(copy, from: directory.blobs, pool.checkOpen)
                try copy.execute("COMMIT")
            }
        } catch {
            remove(path)
            throw error
        }
        return path
    }

    private static func copyPages(
        _ source: SQLiteConnection, _ copy: SQLiteConnection, _ check: () throws(StoreError) -> Void
    ) throws(StoreError) {
        guard let backup = sqlite3_backup_init(copy.pointer, "main", source.pointer, "main") else {
            throw copy.failure()
        }
        var code = SQLITE_OK
        while code == SQLITE_OK {
            do { try check() } catch {
                sqlite3_backup_finish(backup)
                throw error
            }
            code = sqlite3_backup_step(backup, portion)
        }
        // It leaves its error with the copy.
        guard sqlite3_backup_finish(backup) == SQLITE_OK else { throw copy.failure() }
    }

    /// Jobs go on being stored while there is a copy of them.
    private static func checkRoom(_ directory: String, _ source: SQLiteConnection) throws(StoreError) {
        let pages = try source.number("PRAGMA page_count").multipliedReportingOverflow(
            by: source.number("PRAGMA page_size"))
        let blobs = try source.number(
            "SELECT cast(total(size) AS INTEGER) FROM (SELECT DISTINCT life, number, size FROM blobs)")
        let needed = pages.overflow ? .max : pages.partialValue.saturatingAdding(max(0, blobs))
        var disk = statvfs()
        guard statvfs(directory, &disk) == 0 else { throw StoreError.unwritable(directory) }
        let free = Int64(clamping: disk.f_bavail).multipliedReportingOverflow(by: Int64(clamping: disk.f_frsize))
        guard !free.overflow, free.partialValue < needed.saturatingAdding(leastLeft) else { return }
        throw StoreError(
            .write,
            "A backup takes \(needed) bytes for a while in \(directory), and \(free.partialValue) are free there; make "
                + "room and try again.")
    }

    /// Removes a copy, also what a daemon that was killed left of one.
    static func remove(_ path: String) { for ending in ["", "-journal", "-wal", "-shm"] { unlink(path + ending) } }
}

extension SQLiteJobReader {
    package func copyState() throws(StoreError) -> String { try StateCopy.make(directory, pool) }

    /// Looks for damage in the pages, beside all else that is done, and gives what it finds, in sentences; gives nothing
    /// where the store is closed first.
    package func check(_ done: @escaping @Sendable ([String]) -> Void) {
        DispatchQueue(label: "deferd.store.check", qos: .utility).async { [pool] in
            do throws(StoreError) {
                done(
                    try pool.readForLong { connection throws(StoreError) in try connection.flaws(by: "quick_check(10)")
                    })
            } catch {
                if error.code != .closed { done([error.message]) }
            }
        }
    }
}

extension SQLiteConnection {
    /// What one of SQLite's checks finds.
    func flaws(by check: String) throws(StoreError) -> [String] {
        try prepare("PRAGMA \(check)").rows { row throws(StoreError) in
            row.text(0).flatMap { $0 == "ok" ? nil : "The database \(path) is damaged: \($0)." }
        }
    }
}
