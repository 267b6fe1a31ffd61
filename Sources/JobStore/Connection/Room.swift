import CSQLite
import JobModel

/// Room on the disk that is had before it is needed.
///
/// A full disk must not keep jobs from being removed. A removal writes to the log, which takes up room again once it was
/// written into the database. So that this never needs more room than there is, the database's file has it before a commit
/// puts a page into the log that lies behind its end; and the log has some from the start.
final class Room {
    /// The steps in which the database's file grows, in bytes.
    private static let chunk: Int32 = 256 << 10
    /// What the log has from the start, in bytes: enough to remove some hundred jobs before it is used anew.
    private static let log = 4 << 20
    /// The pages that a few more jobs take up.
    private static let few: Int64 = 16

    private let connection: SQLiteConnection
    private let countPages: PreparedStatement
    private let countFreePages: PreparedStatement
    private let pageSize: Int64
    private var pages: Int64 = 0
    /// Those that hold nothing, at the end of the last round.
    private(set) var freePages: Int64 = 0
    /// Whether a round failed for lack of room, and none has shown since that there is some.
    private(set) var isShort = false
    /// Whether this round shows that there is.
    private var showsRoom = false

    init(_ connection: SQLiteConnection) throws(StoreError) {
        self.connection = connection
        try Self.keepInChunks(connection)
        countPages = try connection.prepare("PRAGMA page_count")
        countFreePages = try connection.prepare("PRAGMA freelist_count")
        pageSize = try connection.number("PRAGMA page_size")
        _ = deferd_reserve(connection.path + "-wal", Self.log)
    }

    /// Has a connection leave the file at a whole number of steps, whatever it writes into it or cuts off.
    static func keepInChunks(_ connection: SQLiteConnection) throws(StoreError) {
        var chunk = chunk
        try control(connection, SQLITE_FCNTL_CHUNK_SIZE, &chunk)
    }

    private static func control(
        _ connection: SQLiteConnection, _ operation: Int32, _ argument: UnsafeMutableRawPointer
    ) throws(StoreError) {
        let code = sqlite3_file_control(connection.pointer, "main", operation, argument)
        guard code != SQLITE_OK else { return }
        let failure = SQLiteFailure(code: SQLITE_FULL, message: "its file cannot grow")
        throw connection.failed(StoreError(.write, failure, database: connection.path))
    }

    /// To be called inside a transaction, before anything is written.
    func begin() throws(StoreError) {
        showsRoom = false
        pages = try count(countPages)
    }

    /// To be called before the commit of a transaction that has written.
    func have() throws(StoreError) {
        freePages = try count(countFreePages)
        let grown = try count(countPages)
        if grown > pages { try have(grown) }
    }

    private func have(_ pages: Int64) throws(StoreError) {
        // Does nothing where the file is as long by now, and says so where it cannot be.
        var size = pages * pageSize
        try Self.control(connection, SQLITE_FCNTL_SIZE_HINT, &size)
    }

    private func count(_ statement: PreparedStatement) throws(StoreError) -> Int64 { try statement.number() ?? 0 }

    /// Throws where there is no room for a few more jobs, though the last ones found none: what is left is for removals.
    func check() throws(StoreError) {
        guard isShort else { return }
        if try count(countFreePages) < Self.few { try have(try count(countPages) + Self.few) }
        showsRoom = true
    }

    func committed() { if showsRoom { isShort = false } }

    func failed(_ error: StoreError) { if error.isLackOfRoom { isShort = true } }
}
