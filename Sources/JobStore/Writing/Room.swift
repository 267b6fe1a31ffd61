import CSQLite
import GRDB
import GRDBSQLite
import Glibc
import Synchronization

/// Room on the disk that is had before it is needed.
///
/// A full disk must not keep jobs from being removed. A removal writes to the log, which takes up room again once it was
/// written into the database. So that this never needs more room than there is, the database's file has it before a commit
/// puts a page into the log that lies behind its end; and the log has some from the start.
enum Room {
    /// The steps in which the database's file grows, in bytes.
    private static let chunk: Int32 = 256 << 10
    /// What the log has from the start, in bytes: enough to remove some hundred jobs before it is used anew.
    private static let log = 4 << 20

    /// Has a connection leave the file at a whole number of steps, whatever it writes into it or cuts off.
    static func keepInChunks(_ connection: Database) throws {
        var chunk = chunk
        try control(connection, SQLITE_FCNTL_CHUNK_SIZE, &chunk)
    }

    /// Makes the database's file so long, in bytes, if it is not yet.
    static func have(_ size: Int64, in file: GrowingFile, for connection: Database) throws {
        file.grow(to: (size + Int64(chunk) - 1) / Int64(chunk) * Int64(chunk))
        // Does nothing where the file is as long by now, and says so where it cannot be.
        var size = size
        try control(connection, SQLITE_FCNTL_SIZE_HINT, &size)
    }

    private static func control(
        _ connection: Database, _ operation: Int32, _ argument: UnsafeMutableRawPointer
    ) throws {
        let code = sqlite3_file_control(connection.sqliteConnection, "main", operation, argument)
        guard code != SQLITE_OK else { return }
        throw DatabaseError(resultCode: .SQLITE_FULL, message: "its file cannot grow")
    }

    /// Has room kept for the log of the database at `path`, where the file system can and has some left.
    static func keepForLog(of path: String) {
        _ = deferd_reserve(path + "-wal", log)
    }

    /// Whether an error may come from a disk, a quota or a limit that leaves no room.
    static func isLacking(_ error: any Error) -> Bool {
        guard let error = error as? DatabaseError else { return false }
        return error.resultCode == .SQLITE_FULL || error.resultCode == .SQLITE_IOERR
    }
}

/// The database's file where it is made longer: with one call for a step, where SQLite writes a byte into each block of it.
/// That was a quarter of the calls that write when 100,000 jobs were submitted on one connection (200 of 1,000 jobs, now
/// 153), which is 2 % more of them a second.
///
/// It stays open as long as the database is: closing it gives up the locks that SQLite has on it, see fcntl(2).
final class GrowingFile: Sendable {
    private let descriptor: Mutex<Int32>

    init(_ path: String) {
        descriptor = Mutex(open(path, O_RDWR | O_CLOEXEC))
    }

    deinit { close() }

    /// Makes it at least so long, in bytes, if the file system can.
    func grow(to size: Int64) {
        descriptor.withLock { if $0 >= 0 { _ = deferd_extend($0, Int(size)) } }
    }

    /// To be called once the database is closed.
    func close() {
        descriptor.withLock { descriptor in
            if descriptor >= 0 { Glibc.close(descriptor) }
            descriptor = -1
        }
    }
}
