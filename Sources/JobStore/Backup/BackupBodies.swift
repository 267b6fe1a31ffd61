import GRDB
import Glibc
import JobModel

/// The bodies of jobs that stand in files, in a table of a backup: it is whole by itself, and a daemon that finds it as its
/// database takes them out again.
enum BackupBodies {
    static let table = "backup_bodies"
    private static let partSize = 256 << 10

    /// Puts the bodies into the copy `connection`. One that has changed since belongs to a job that has, too. `check` throws
    /// to end it.
    static func insert(from directory: String, into connection: Database, _ check: () throws -> Void) throws {
        try connection.execute(
            sql: """
                CREATE TABLE \(table) (
                    job INTEGER NOT NULL, link INTEGER NOT NULL, part INTEGER NOT NULL, data BLOB NOT NULL,
                    PRIMARY KEY (job, link, part)
                ) STRICT
                """)
        let insert = try PreparedStatement(
            "INSERT INTO \(table) (job, link, part, data) VALUES (?1, ?2, ?3, ?4)", on: connection)
        for (job, sizes) in try sizes(in: connection) {
            for (link, size) in sizes {
                let path = "\(directory)/\(job)-\(link)"
                guard let file = try ReadableFile(path), file.length == size else { continue }
                for (part, offset) in stride(from: 0, to: size, by: partSize).enumerated() {
                    try check()
                    insert.bind(job, at: 1)
                    insert.bind(link, at: 2)
                    insert.bind(part, at: 3)
                    insert.bind(bytes: try file.read(min(partSize, size - offset), at: offset, of: path), at: 4)
                    try insert.run()
                }
            }
        }
    }

    /// Takes them out again, where the database is a backup.
    static func unpack(_ connection: Database, to directory: String) throws {
        guard try connection.tableExists(table) else { return }
        guard mkdir(directory, 0o700) == 0 || errno == EEXIST else { throw StoreError.unwritable(directory) }
        let files = try PreparedStatement("SELECT DISTINCT job, link FROM \(table)", on: connection).rows { row in
            (job: row.integer(0), link: row.integer(1))
        }
        for file in files { try write(file.job, file.link, to: directory, from: connection) }
        guard StateDirectory.sync(directoryOf: directory + "/.") else { throw StoreError.unwritable(directory) }
        // The last step, so that one that was cut short is done again.
        try connection.execute(sql: "DROP TABLE \(table)")
    }

    private static func write(_ job: JobID, _ link: Int64, to directory: String, from connection: Database) throws {
        let path = "\(directory)/\(job)-\(link)"
        let file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else { throw StoreError.unwritable(path) }
        defer { close(file) }
        let parts = try PreparedStatement(
            "SELECT data FROM \(table) WHERE job = ?1 AND link = ?2 ORDER BY part", on: connection)
        parts.bind(job, at: 1)
        parts.bind(link, at: 2)
        _ = try parts.rows { row -> Bool? in
            try row.bytes(0) { bytes in
                var written = 0
                while written < bytes.count {
                    let count = Glibc.write(file, bytes.baseAddress.map { $0 + written }, bytes.count - written)
                    if count < 0, errno == EINTR { continue }
                    guard count > 0 else { throw StoreError.unwritable(path) }
                    written += count
                }
            }
            return nil
        }
        guard fsync(file) == 0 else { throw StoreError.unwritable(path) }
    }

    /// What the jobs in a database say of their bodies.
    static func sizes(in connection: Database) throws -> [(job: JobID, sizes: [Int: Int])] {
        try PreparedStatement("SELECT id, bodies FROM jobs WHERE bodies IS NOT NULL", on: connection).rows { row in
            let json = row.utf8(1) { try? JSONParser.parse($0) } ?? nil
            return json.flatMap(StoredBodies.sizes).map { (row.integer(0), $0) }
        }
    }

    static func size(in connection: Database) throws -> Int64 {
        try sizes(in: connection).reduce(0) { sum, job in
            job.sizes.values.reduce(sum) { $0.saturatingAdding(Int64($1)) }
        }
    }
}
