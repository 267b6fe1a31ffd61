/// What the write-ahead log beside a database holds (https://sqlite.org/fileformat2.html#the_write_ahead_log).
///
/// SQLite reads a log up to the first frame whose checksum is wrong, as the last transaction may have been cut short by a
/// loss of power, and drops what follows. Where that frame belongs to an earlier transaction, which was synced and
/// answered, the log is damaged, and going on without what follows would lose jobs.
struct WriteAheadLog {
    /// Why a log cannot be what SQLite wrote, as a clause.
    struct Damage: Error {
        let reason: String
    }

    /// The pages that the database has after the last whole transaction; nil where the log holds none.
    private(set) var pageCount: Int?
    /// The pages that are in the log, up to the end of that transaction.
    private(set) var pages: Set<Int> = []

    private static let headerLength = 32
    private static let frameHeaderLength = 24

    /// Reads the log at `path`; one that is missing or empty holds nothing.
    init(_ path: String, pageSize: Int) throws {
        guard let file = try ReadableFile(path), file.length > 0 else { return }
        let header = try file.read(Self.headerLength, at: 0, of: path)
        // The header is synced before the first frame is written, so a log cut short while it was begun has no frames.
        guard header.count == Self.headerLength else { return }
        guard let log = Checksum.order(header), Checksum(log).adding(header[..<24]).matches(header, at: 24) else {
            guard try Self.isBlank(file, path) else { throw Damage(reason: "the header of its log \(path) is wrong") }
            return
        }
        guard header.bigEndian(at: 8) == pageSize else { throw Damage(reason: "its log \(path) has another page size") }
        try read(file, path, header, pageSize: pageSize, log)
    }

    private mutating func read(
        _ file: borrowing ReadableFile, _ path: String, _ header: [UInt8], pageSize: Int, _ order: Checksum.Order
    ) throws {
        let length = Self.frameHeaderLength + pageSize
        let perRead = max(1, (1 << 20) / length)
        var checksum = Checksum(order, header, at: 24)
        var present: Set<Int> = []
        var isWhole = true
        // Transactions that end in an unbroken run of frames behind the first wrong one.
        var later = 0
        var offset = Self.headerLength
        while offset + length <= file.length {
            let bytes = try file.read(min(perRead, (file.length - offset) / length) * length, at: offset, of: path)
            for start in stride(from: 0, to: bytes.count - length + 1, by: length) {
                // Frames of an earlier round through the log have other salts, and so has a damaged one: it is followed by those
                // of this round.
                guard bytes[start + 8..<start + 16].elementsEqual(header[16..<24]) else {
                    isWhole = false
                    later = 0
                    checksum = Checksum(order, bytes, at: start + 16)
                    continue
                }
                let size = Int(bytes.bigEndian(at: start + 4))
                let sum = checksum.adding(bytes[start..<start + 8])
                    .adding(bytes[start + Self.frameHeaderLength..<start + length])
                let isValid = sum.matches(bytes, at: start + 16)
                if isWhole, isValid {
                    present.insert(Int(bytes.bigEndian(at: start)))
                    if size > 0 {
                        pageCount = size
                        pages.formUnion(present)
                        present.removeAll()
                    }
                } else {
                    isWhole = false
                    later = isValid ? later + (size > 0 ? 1 : 0) : 0
                    // What was never synced, or failed to be, is the end of one transaction. The second to end in the
                    // same run was begun after the first was synced.
                    guard later < 2 else { throw Damage(reason: "a frame in the middle of its log \(path) is wrong") }
                }
                checksum = Checksum(order, bytes, at: start + 16)
            }
            offset += bytes.count
        }
    }

    private static func isBlank(_ file: borrowing ReadableFile, _ path: String) throws -> Bool {
        for offset in stride(from: 0, to: file.length, by: 1 << 20) {
            guard try file.read(1 << 20, at: offset, of: path).allSatisfy({ $0 == 0 }) else { return false }
        }
        return true
    }
}

/// The running checksum of a write-ahead log.
private struct Checksum {
    enum Order {
        case little
        case big
    }

    private let order: Order
    private var first: UInt32 = 0
    private var second: UInt32 = 0

    init(_ order: Order) { self.order = order }

    /// The sum as it is written down at `offset`.
    init(_ order: Order, _ bytes: [UInt8], at offset: Int) {
        self.order = order
        first = bytes.bigEndian(at: offset)
        second = bytes.bigEndian(at: offset + 4)
    }

    /// The order of the bytes of a word, or nil where the header is that of no log.
    static func order(_ header: [UInt8]) -> Order? {
        guard header.bigEndian(at: 4) == 3_007_000 else { return nil }
        switch header.bigEndian(at: 0) {
        case 0x377F_0682: return .little
        case 0x377F_0683: return .big
        default: return nil
        }
    }

    /// The sum with `bytes` in it, a whole number of pairs of words.
    func adding(_ bytes: ArraySlice<UInt8>) -> Checksum {
        var sum = self
        bytes.withUnsafeBytes { raw in
            for offset in stride(from: 0, to: raw.count, by: 8) {
                sum.first = sum.first &+ word(raw, offset) &+ sum.second
                sum.second = sum.second &+ word(raw, offset + 4) &+ sum.first
            }
        }
        return sum
    }

    private func word(_ raw: UnsafeRawBufferPointer, _ offset: Int) -> UInt32 {
        let word = raw.loadUnaligned(fromByteOffset: offset, as: UInt32.self)
        return order == .little ? UInt32(littleEndian: word) : UInt32(bigEndian: word)
    }

    func matches(_ bytes: [UInt8], at offset: Int) -> Bool {
        first == bytes.bigEndian(at: offset) && second == bytes.bigEndian(at: offset + 4)
    }
}
