import CLinux
import CSQLite
import JobModel

/// Reserves room on the disk, so that jobs can be removed even on a full one.
///
/// A removal writes to the log, and the log into the database. So the log has some room from the start, and the database's
/// file grows before a commit puts a page behind its end into the log.
final class Room {
    /// The bytes by which the database's file grows.
    private static let chunk: Int32 = 256 << 10
    /// The bytes of the log from the start: enough to remove some hundred jobs before it starts again.
    private static let log = 4 << 20
    /// The pages of a few more jobs.
    private static let few: Int64 = 16

    private let connection: SQLiteConnection
    private let pageSize: Int64
    /// Free pages at the end of the last round.
    private(set) var freePages: Int64 = 0
    /// Whether a round failed for lack of room, and there was none since.
    var isShort = false

    init(_ connection: SQLiteConnection) throws(StoreError) {
        self.connection = connection
        try Self.keepInChunks(connection)
        pageSize = try connection.number("PRAGMA page_size")
        deferd_reserve(connection.path + "-wal", Self.log)
    }

    /// Lets a connection grow and shrink the file in whole steps only.
    static func keepInChunks(_ connection: SQLiteConnection) throws(StoreError) {
        var chunk = chunk
        try control(connection, SQLITE_FCNTL_CHUNK_SIZE, &chunk)
    }

    private static func control(
        _ connection: SQLiteConnection, _ operation: Int32, _ argument: UnsafeMutableRawPointer
    ) throws(StoreError) {
        let code = sqlite3_file_control(connection.pointer, "main", operation, argument)
        guard code != SQLITE_OK else { return }
        let failure = SQLiteFailure(code: SQLITE_FULL, description: "its file cannot grow")
        throw connection.failed(StoreError(.write, failure, database: connection.path))
    }

    /// Lets the file have its present pages and some more; fails if it cannot be that long. To be called before a commit.
    func have(_ more: Int64 = 0) throws(StoreError) {
        freePages = try connection.number("PRAGMA freelist_count")
        var size = (try connection.number("PRAGMA page_count") + more) * pageSize
        guard StateDirectory.size(connection.path) < size else { return }
        try Self.control(connection, SQLITE_FCNTL_SIZE_HINT, &size)
    }

    /// Throws if the last jobs found no room and there is none for a few more: what is left is for removals.
    func check() throws(StoreError) {
        guard isShort else { return }
        if try connection.number("PRAGMA freelist_count") < Self.few { try have(Self.few) }
        isShort = false
    }
}
