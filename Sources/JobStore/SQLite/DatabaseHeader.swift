/// The first 100 bytes of a database file (https://sqlite.org/fileformat2.html#the_database_header).
struct DatabaseHeader {
    static let length = 100

    let pageSize: Int
    /// Pages that the file should have, or nil where the header does not say.
    let pageCount: Int?
    let applicationID: UInt32

    /// The header that `bytes` are, or nil where they are none.
    init?(_ bytes: [UInt8]) {
        guard bytes.count >= Self.length, bytes.starts(with: "SQLite format 3\0".utf8) else { return nil }
        let size = Int(bytes[16]) << 8 | Int(bytes[17])
        pageSize = size == 1 ? 65_536 : size
        guard pageSize >= 512, pageSize & (pageSize - 1) == 0, (1...2).contains(bytes[18]), (1...2).contains(bytes[19]),
            Array(bytes[21...23]) == [64, 32, 32]
        else { return nil }
        // A writer too old to keep the count leaves the change counter behind it.
        pageCount = bytes.bigEndian(at: 24) == bytes.bigEndian(at: 92) ? Int(bytes.bigEndian(at: 28)) : nil
        applicationID = bytes.bigEndian(at: 68)
    }
}
