import GRDB
import GRDBSQLite
import JobModel

/// The stored JSON of a succeeded job's result, read in parts; as a column it could only be read whole.
///
/// Not to leave the transaction that it was opened in.
final class StoredResult {
    /// The text before the result.
    private static let head = Array(#"{"ok":"#.utf8)
    private static let tail = Array("}".utf8)

    private let text: OpaquePointer
    /// Bytes of the result.
    let size: Int

    deinit { sqlite3_blob_close(text) }

    /// Nil where job `id` has none.
    init?(of id: JobID, in connection: Database) throws {
        var opened: OpaquePointer?
        let code = sqlite3_blob_open(connection.sqliteConnection, "main", "jobs", "carried", id, 0, &opened)
        guard code == SQLITE_OK, let opened else {
            // There is no such row, or it has nothing there.
            if code & 0xFF == SQLITE_ERROR { return nil }
            throw DatabaseError(resultCode: ResultCode(rawValue: code))
        }
        text = opened
        size = Int(sqlite3_blob_bytes(opened)) - Self.head.count - Self.tail.count
        guard size > 0, try Self.read(opened, 0, Self.head.count) == Self.head else {
            throw StoreError(
                .read, "Job \(id) cannot be read from the database, as its result makes no sense; remove the job.")
        }
    }

    /// `length` bytes from `offset` on, as far as there are.
    func bytes(offset: Int, length: Int) throws -> [UInt8] {
        let start = min(max(0, offset), size)
        return try Self.read(text, Self.head.count + start, min(max(0, length), size - start))
    }

    private static func read(_ text: OpaquePointer, _ offset: Int, _ length: Int) throws -> [UInt8] {
        try [UInt8](unsafeUninitializedCapacity: length) { buffer, count in
            guard length > 0 else { return }
            let code = sqlite3_blob_read(text, buffer.baseAddress, Int32(length), Int32(offset))
            guard code == SQLITE_OK else { throw DatabaseError(resultCode: ResultCode(rawValue: code)) }
            count = length
        }
    }
}
