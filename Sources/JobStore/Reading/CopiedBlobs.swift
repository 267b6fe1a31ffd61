import Glibc
import JobModel
import SystemPackage

/// The engine's files in a table of a copy of the database, so that the copy is one file. A daemon whose database is a copy
/// writes the files again.
enum CopiedBlobs {
    private static let partSize = 256 << 10

    /// Puts the files of `directory` that rows name into a copy. `check` throws to end this.
    static func putIn(
        _ copy: SQLiteConnection, from directory: String, _ check: () throws(StoreError) -> Void
    ) throws(StoreError) {
        try copy.execute("UPDATE state SET is_copy = 1")
        let insert = "INSERT INTO blob_parts (life, number, part, data) VALUES (?1, ?2, ?3, ?4)"
        for blob in try blobs(copy, "blobs") {
            let name = directory + "/" + blob.name
            // A job may still name a file that is gone, if it does not need it any more.
            guard let file = try? FileDescriptor.open(name, .readOnly, options: [.closeOnExec, .noFollow]) else {
                continue
            }
            defer { try? file.close() }
            // The size of a program's output may not be known yet.
            for number in 0... {
                try check()
                let part = try? [UInt8](unsafeUninitializedCapacity: partSize) {
                    $1 = try file.read(into: UnsafeMutableRawBufferPointer($0))
                }
                guard let part else {
                    let reason = Errno(rawValue: errno)
                    throw StoreError(
                        .read, "The file \(name) cannot be read (\(reason)); check its disk and permissions.")
                }
                if part.isEmpty { break }
                try copy.statement(insert, [blob.life, blob.number, number, part]).run()
            }
        }
    }

    private static func blobs(_ connection: SQLiteConnection, _ table: String) throws(StoreError) -> [BlobReference] {
        try connection.rows("SELECT DISTINCT life, number, 0 FROM \(table)", [], atMost: .max, BlobReference.init)
    }

    /// Writes the files of a copy into `directory`; then the database is none.
    static func takeOut(of connection: SQLiteConnection, to directory: String) throws(StoreError) {
        guard mkdir(directory, 0o700) == 0 || errno == EEXIST else { throw StoreError.unwritable(directory) }
        for blob in try blobs(connection, "blob_parts") {
            let name = directory + "/" + blob.name
            guard
                let file = try? FileDescriptor.open(
                    name, .writeOnly, options: [.create, .truncate, .closeOnExec, .noFollow],
                    permissions: .ownerReadWrite)
            else { throw StoreError.unwritable(name) }
            defer { try? file.close() }
            let select = "SELECT data FROM blob_parts WHERE life = ?1 AND number = ?2 ORDER BY part"
            try connection.forEach(select, [blob.life, blob.number]) { part throws(StoreError) in
                guard part.withBytes(0, { try? file.writeAll($0) }) != nil else { throw StoreError.unwritable(name) }
                return true
            }
            guard fsync(file.rawValue) == 0 else { throw StoreError.unwritable(name) }
        }
        guard StateDirectory.sync(directory) else { throw StoreError.unwritable(directory) }
        // The last step, so that an interrupted start does all of this again.
        try connection.execute("BEGIN; DELETE FROM blob_parts; UPDATE state SET is_copy = 0; COMMIT")
    }
}
