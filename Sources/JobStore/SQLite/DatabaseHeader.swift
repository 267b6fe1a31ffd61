import JobModel

/// The first 100 bytes of a database file (https://sqlite.org/fileformat2.html#the_database_header), which say whose it is
/// before SQLite touches it.
struct DatabaseHeader {
    private static let length = 100

    /// Checks that the file at `path` is a database of deferd and of this version; false where there is none.
    static func check(_ path: String) throws(StoreError) -> Bool {
        guard let file = try ReadableFile(path) else {
            // SQLite never leaves a log without its database, and would put it into a new one.
            guard try logLength(of: path) == 0 else { throw .damaged(path, "it is missing, but its log is there") }
            return false
        }
        let bytes = try file.read(length, at: 0, of: path)
        guard bytes.count == length, bytes.starts(with: "SQLite format 3\0".utf8) else {
            throw .damaged(path, bytes.isEmpty ? "it is empty" : "it does not begin as a database does")
        }
        guard bytes.bigEndian(at: 68) == Schema.applicationID else {
            throw .damaged(path, "it was not made by deferd")
        }
        let version = bytes.bigEndian(at: 60)
        guard version == Schema.version else { throw .otherVersion(path, "has version \(version)") }
        return true
    }

    /// The bytes in the log of the database at `path`; 0 once a daemon has closed it.
    static func logLength(of path: String) throws(StoreError) -> Int {
        try ReadableFile(path + "-wal")?.length ?? 0
    }
}

extension StoreError {
    /// Another version of deferd made the database, as `sign`, a predicate, shows.
    static func otherVersion(_ path: String, _ sign: String) -> StoreError {
        StoreError(
            .otherVersion,
            "The database \(path) \(sign), but this deferd reads version \(Schema.version) as it makes it; start the deferd "
                + "that made it, or move it and the files named \(path)-* away to begin anew.",
            isLasting: true)
    }
}
