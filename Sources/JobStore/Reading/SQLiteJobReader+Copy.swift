import Dispatch
import Glibc
package import JobModel

/// Copies of the state, and checks of it, while jobs run.
extension SQLiteJobReader {
    /// Bytes that must stay free on the disk beside a copy.
    private static let leastLeft: Int64 = 64 << 20

    /// SQLite copies the rows of one snapshot, so the copy is of one moment, and no round waits for it. What rounds write
    /// meanwhile stays in the log.
    package func copyState() throws(StoreError) -> String {
        let path = directory.backup
        do {
            try readForLong { source throws(StoreError) in
                try checkRoom(source)
                try StateDirectory.createFile(path)
                // The copy is not synced: the client that keeps it writes it again.
                try source.execute("PRAGMA synchronous = OFF")
                try checkOpen()
                do throws(StoreError) { try source.statement("VACUUM INTO ?1", [path]).run() } catch {
                    guard error.code == .read, let failure = error.underlying as? SQLiteFailure else { throw error }
                    throw StoreError(.write, failure, database: path)
                }
                let copy = try SQLiteConnection(path, errors: .write)
                try copy.execute("PRAGMA synchronous = OFF; BEGIN")
                try CopiedBlobs.putIn(copy, from: directory.blobs, checkOpen)
                try copy.execute("COMMIT")
            }
        } catch {
            StateDirectory.removeDatabase(path)
            throw error
        }
        return path
    }

    /// Throws unless there is room for the copy, so that jobs can be stored meanwhile.
    private func checkRoom(_ source: SQLiteConnection) throws(StoreError) {
        let files = try source.number(
            "SELECT cast(total(size) AS INTEGER) FROM (SELECT DISTINCT life, number, size FROM blobs)")
        let size = StateDirectory.size(directory.database).saturatingAdding(files)
        var disk = statvfs()
        guard statvfs(directory.blobs, &disk) == 0 else { throw StoreError.unwritable(directory.blobs) }
        let free = Double(disk.f_bavail) * Double(disk.f_frsize)
        guard free < Double(size) + Double(Self.leastLeft) else { return }
        throw StoreError(
            .write,
            "A backup takes \(size) bytes for a while in \(directory.blobs), and \(Int64(free)) are free there; make room and "
                + "try again.")
    }

    /// Checks the pages of the database in the background; calls `done` with the flaws, in sentences, unless the store is
    /// closed before.
    package func check(_ done: @escaping @Sendable ([String]) -> Void) {
        DispatchQueue(label: "deferd.store.check", qos: .utility).async { [self] in
            do throws(StoreError) {
                done(try readForLong { connection throws(StoreError) in try connection.flaws(by: "quick_check(10)") })
            } catch {
                if error.code != .closed { done([error.message]) }
            }
        }
    }
}

extension SQLiteConnection {
    /// The flaws that one of SQLite's checks finds.
    func flaws(by check: String) throws(StoreError) -> [String] {
        try rows("PRAGMA \(check)", [], atMost: .max) { row in
            row.text(0).flatMap { $0 == "ok" ? nil : "The database \(path) is damaged: \($0)." }
        }
    }
}
