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
    private let countPages: PreparedStatement
    private let countFreePages: PreparedStatement
    private let pageSize: Int64
    private var pages: Int64 = 0
    /// Free pages at the end of the last round.
    private(set) var freePages: Int64 = 0
    /// Whether a round failed for lack of room, and no later one has shown that there is some.
    private(set) var isShort = false
    /// Whether this round will show that there is room, if it is committed.
    private var showsRoom = false

    init(_ connection: SQLiteConnection) throws(StoreError) {
        self.connection = connection
        try Self.keepInChunks(connection)
        countPages = try connection.prepare("PRAGMA page_count")
        countFreePages = try connection.prepare("PRAGMA freelist_count")
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

    /// Called inside a transaction, before it writes.
    func begin() throws(StoreError) {
        showsRoom = false
        pages = try count(countPages)
    }

    /// Called before the commit of a transaction.
    func have() throws(StoreError) {
        freePages = try count(countFreePages)
        let grown = try count(countPages)
        if grown > pages { try have(grown) }
    }

    private func have(_ pages: Int64) throws(StoreError) {
        // It does nothing if the file is that long already, and fails if it cannot be.
        var size = pages * pageSize
        try Self.control(connection, SQLITE_FCNTL_SIZE_HINT, &size)
    }

    private func count(_ statement: PreparedStatement) throws(StoreError) -> Int64 { try statement.number() ?? 0 }

    /// Throws if the last jobs found no room and there is none for a few more: what is left is for removals.
    func check() throws(StoreError) {
        guard isShort else { return }
        if try count(countFreePages) < Self.few { try have(try count(countPages) + Self.few) }
        showsRoom = true
    }

    func committed() { if showsRoom { isShort = false } }

    func failed(_ error: StoreError) { if error.isLackOfRoom { isShort = true } }
}
