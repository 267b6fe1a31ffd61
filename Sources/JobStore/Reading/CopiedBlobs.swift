import Glibc
import JobModel
import SystemPackage

/// The engine's files in a table of a copy of the database: so the copy is whole by itself, and a daemon that finds it as its
/// database takes them out again.
enum CopiedBlobs {
    private static let table = "copied_blobs"
    private static let partSize: Int64 = 256 << 10

    /// Puts the files of the directory `path` that rows name into a copy. `check` throws to end it.
    static func putIn(
        _ copy: SQLiteConnection, from path: String, _ check: () throws(StoreError) -> Void
    ) throws(StoreError) {
        try copy.execute(
            """
            CREATE TABLE \(table) (
                life INTEGER NOT NULL, number INTEGER NOT NULL, part INTEGER NOT NULL, data BLOB NOT NULL,
                PRIMARY KEY (life, number, part)
            ) STRICT
            """)
        let blobs = try copy.prepare("SELECT DISTINCT life, number, size FROM blobs").rows(blob)
        for blob in blobs {
            let name = path + "/" + blob.name
            // A row may name a file that is gone where it does not need it any more.
            guard let file = try? FileDescriptor.open(name, .readOnly, options: [.closeOnExec, .noFollow]) else {
                continue
            }
            defer { try? file.close() }
            var offset: Int64 = 0
            while offset < blob.size {
                try check()
                let part = try bytes(of: file, at: offset, min(partSize, blob.size - offset), name)
                if part.isEmpty { break }
                let insert = "INSERT INTO \(table) (life, number, part, data) VALUES (?1, ?2, ?3, ?4)"
                try copy.statement(insert, blob.life, blob.number, offset, part).run()
                offset += Int64(part.count)
            }
        }
    }

    private static func bytes(
        of file: FileDescriptor, at offset: Int64, _ count: Int64, _ name: String
    ) throws(StoreError) -> [UInt8] {
        do {
            return try [UInt8](unsafeUninitializedCapacity: Int(count)) { buffer, filled in
                filled = try file.read(fromAbsoluteOffset: offset, into: UnsafeMutableRawBufferPointer(buffer))
            }
        } catch {
            throw StoreError(.read, "The file \(name) cannot be read (\(error)); check its disk and permissions.")
        }
    }

    private static func blob(_ row: PreparedStatement) -> BlobReference? {
        BlobReference(life: row.integer(0), number: row.integer(1), size: row.integer(2))
    }

    /// Takes the files out again where the database is such a copy, and gives whether it is one.
    static func takeOut(of connection: SQLiteConnection, to path: String) throws(StoreError) -> Bool {
        guard try isCopy(connection) else { return false }
        guard mkdir(path, 0o700) == 0 || errno == EEXIST else { throw StoreError.unwritable(path) }
        for blob in try connection.prepare("SELECT DISTINCT life, number, 0 FROM \(table)").rows(blob) {
            let name = path + "/" + blob.name
            do {
                let file = try FileDescriptor.open(
                    name, .writeOnly, options: [.create, .truncate, .closeOnExec, .noFollow],
                    permissions: .ownerReadWrite)
                defer { try? file.close() }
                let parts = try connection.statement(
                    "SELECT data FROM \(table) WHERE life = ?1 AND number = ?2 ORDER BY part", blob.life, blob.number)
                defer { parts.reset() }
                while try parts.step() { try parts.withBytes(0) { _ = try file.writeAll($0) } }
                guard fsync(file.rawValue) == 0 else { throw Errno(rawValue: errno) }
            } catch let error as StoreError {
                throw error
            } catch {
                errno = (error as? Errno ?? .ioError).rawValue
                throw StoreError.unwritable(name)
            }
        }
        guard StateDirectory.sync(path) else { throw StoreError.unwritable(path) }
        // The last step, so that one that was cut short is done again.
        try connection.execute("DROP TABLE \(table)")
        return true
    }

    private static func isCopy(_ connection: SQLiteConnection) throws(StoreError) -> Bool {
        try connection.number("SELECT count(*) FROM sqlite_schema WHERE name = '\(table)'") > 0
    }

    /// How many bytes of a file are in a copy; nil where the database is not one.
    static func size(of blob: BlobReference, in connection: SQLiteConnection) throws(StoreError) -> Int64? {
        guard try isCopy(connection) else { return nil }
        return try connection.statement(
            "SELECT coalesce(sum(length(data)), 0) FROM \(table) WHERE life = ?1 AND number = ?2", blob.life,
            blob.number
        ).number()
    }
}
