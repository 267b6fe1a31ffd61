import Glibc
import JobModel
import SystemPackage

/// The engine's files in a table of a copy of the database, so that the copy is one file. A daemon whose database has this
/// table writes the files again.
enum CopiedBlobs {
    private static let table = "copied_blobs"
    private static let partSize = 256 << 10

    /// Puts the files of `directory` that rows name into a copy. `check` throws to end this.
    static func putIn(
        _ copy: SQLiteConnection, from directory: String, _ check: () throws(StoreError) -> Void
    ) throws(StoreError) {
        try copy.execute(
            """
            CREATE TABLE \(table) (
                life INTEGER NOT NULL, number INTEGER NOT NULL, part INTEGER NOT NULL, data BLOB NOT NULL,
                PRIMARY KEY (life, number, part)
            ) STRICT
            """)
        let insert = "INSERT INTO \(table) (life, number, part, data) VALUES (?1, ?2, ?3, ?4)"
        for blob in try copy.prepare("SELECT DISTINCT life, number, 0 FROM blobs").rows(BlobReference.init) {
            let name = directory + "/" + blob.name
            // A job may still name a file that is gone, if it does not need it any more.
            guard let file = try? FileDescriptor.open(name, .readOnly, options: [.closeOnExec, .noFollow]) else {
                continue
            }
            defer { try? file.close() }
            // The size of a program's output may not be known yet.
            for number in 0... {
                try check()
                let part = try read(file, name)
                if part.isEmpty { break }
                try copy.statement(insert, [blob.life, blob.number, number, part]).run()
            }
        }
    }

    private static func read(_ file: FileDescriptor, _ name: String) throws(StoreError) -> [UInt8] {
        do {
            return try [UInt8](unsafeUninitializedCapacity: partSize) {
                $1 = try file.read(into: UnsafeMutableRawBufferPointer($0))
            }
        } catch {
            throw StoreError(.read, "The file \(name) cannot be read (\(error)); check its disk and permissions.")
        }
    }

    /// Writes the files into `directory` if the database is such a copy; returns whether it is.
    static func takeOut(of connection: SQLiteConnection, to directory: String) throws(StoreError) -> Bool {
        guard try isCopy(connection) else { return false }
        guard mkdir(directory, 0o700) == 0 || errno == EEXIST else { throw StoreError.unwritable(directory) }
        for blob in try connection.prepare("SELECT DISTINCT life, number, 0 FROM \(table)").rows(BlobReference.init) {
            let name = directory + "/" + blob.name
            let parts = try connection.statement(
                "SELECT data FROM \(table) WHERE life = ?1 AND number = ?2 ORDER BY part", [blob.life, blob.number])
            defer { parts.reset() }
            guard
                let file = try? FileDescriptor.open(
                    name, .writeOnly, options: [.create, .truncate, .closeOnExec, .noFollow],
                    permissions: .ownerReadWrite)
            else { throw StoreError.unwritable(name) }
            defer { try? file.close() }
            while try parts.step() {
                guard parts.withBytes(0, { try? file.writeAll($0) }) != nil else { throw StoreError.unwritable(name) }
            }
            guard fsync(file.rawValue) == 0 else { throw StoreError.unwritable(name) }
        }
        guard StateDirectory.sync(directory) else { throw StoreError.unwritable(directory) }
        // The last step, so that an interrupted start does all of this again.
        try connection.execute("DROP TABLE \(table)")
        return true
    }

    private static func isCopy(_ connection: SQLiteConnection) throws(StoreError) -> Bool {
        try connection.number("SELECT count(*) FROM sqlite_schema WHERE name = '\(table)'") > 0
    }

    /// The bytes of a file in a copy; nil if the database is none.
    static func size(of blob: BlobReference, in connection: SQLiteConnection) throws(StoreError) -> Int64? {
        guard try isCopy(connection) else { return nil }
        let select = "SELECT coalesce(sum(length(data)), 0) FROM \(table) WHERE life = ?1 AND number = ?2"
        return try connection.statement(select, [blob.life, blob.number]).number()
    }
}
