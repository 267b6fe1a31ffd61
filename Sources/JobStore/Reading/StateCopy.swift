import CSQLite
import Dispatch
import Glibc
package import JobModel

/// Makes copies of the state while jobs run.
///
/// SQLite copies the pages of one snapshot, so the copy is of one moment, and no round waits for it. What rounds write
/// meanwhile stays in the log.
enum StateCopy {
    /// Bytes that must stay free on the disk.
    private static let leastLeft: Int64 = 64 << 20
    /// Pages that are copied between two checks whether the daemon stops.
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
                try copyPages(source, copy, pool)
                // The copy has no log, and is not synced: the client that keeps it writes it again.
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
        _ source: SQLiteConnection, _ copy: SQLiteConnection, _ pool: ReadingPool
    ) throws(StoreError) {
        guard let backup = sqlite3_backup_init(copy.pointer, "main", source.pointer, "main") else {
            throw copy.failure()
        }
        var isOpen = true
        while isOpen, sqlite3_backup_step(backup, portion) == SQLITE_OK { isOpen = (try? pool.checkOpen()) != nil }
        // It leaves its error with the copy.
        guard sqlite3_backup_finish(backup) == SQLITE_OK else { throw copy.failure() }
        try pool.checkOpen()
    }

    /// Throws unless there is room for the copy, so that jobs can be stored meanwhile.
    private static func checkRoom(_ directory: String, _ source: SQLiteConnection) throws(StoreError) {
        let size = try source.number(
            """
            SELECT cast((SELECT page_count * page_size FROM pragma_page_count, pragma_page_size) + total(size) AS INTEGER) \
            FROM (SELECT DISTINCT life, number, size FROM blobs)
            """)
        var disk = statvfs()
        guard statvfs(directory, &disk) == 0 else { throw StoreError.unwritable(directory) }
        let free = Double(disk.f_bavail) * Double(disk.f_frsize)
        guard free < Double(size) + Double(leastLeft) else { return }
        throw StoreError(
            .write,
            "A backup takes \(size) bytes for a while in \(directory), and \(Int64(free)) are free there; make room and "
                + "try again.")
    }

    /// Removes a copy, or what a killed daemon left of one.
    static func remove(_ path: String) { for ending in ["", "-journal", "-wal", "-shm"] { unlink(path + ending) } }
}

extension SQLiteJobReader {
    package func copyState() throws(StoreError) -> String { try StateCopy.make(directory, pool) }

    /// Checks the pages of the database in the background; calls `done` with the flaws, in sentences, unless the store is
    /// closed before.
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
    /// The flaws that one of SQLite's checks finds.
    func flaws(by check: String) throws(StoreError) -> [String] {
        try prepare("PRAGMA \(check)").rows { row throws(StoreError) in
            row.text(0).flatMap { $0 == "ok" ? nil : "The database \(path) is damaged: \($0)." }
        }
    }
}
