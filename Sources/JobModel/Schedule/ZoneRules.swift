/// A zone's clock changes and offsets from UTC, as in a TZif file (RFC 9636).
///
/// After the last change that the file lists, its footer gives yearly rules.
package struct ZoneRules: Sendable, Hashable {
    /// The time between two changes.
    struct Period: Equatable {
        /// The start, in seconds since 1970.
        var start: Int64
        /// The start of the next period.
        var end: Int64
        /// Seconds that local time is ahead of UTC.
        var offset: Int64
    }

    /// Why bytes are not a zone's rules, as a clause.
    package struct Flaw: Error, Equatable {
        package let reason: String
    }

    /// The maximum size of a file in bytes; the largest in existence has 4 KiB.
    package static let longest = 64 << 10

    private let changes: [Int64]
    /// One more than there are changes: the first applies before all of them.
    private let offsets: [Int64]
    private let footer: ZoneFooter?

    /// Coordinated Universal Time, which needs no file.
    package static let utc = ZoneRules(changes: [], offsets: [0], footer: nil)

    init(changes: [Int64], offsets: [Int64], footer: ZoneFooter?) {
        self.changes = changes
        self.offsets = offsets
        self.footer = footer
    }

    /// Parses a TZif file.
    package init(tzif bytes: [UInt8]) throws(Flaw) {
        guard bytes.count <= Self.longest else { throw Flaw(reason: "it is longer than \(Self.longest) bytes") }
        var reader = TZifReader(bytes)
        // 32-bit times come first, for readers that know no others.
        try reader.skip(reader.header().length)
        let header = try reader.header()
        var changes: [Int64] = []
        for _ in 0..<header.times { changes.append(try reader.integer(8)) }
        let indexes = try reader.bytes(header.times)
        var types: [Int64] = []
        for _ in 0..<header.types {
            types.append(try reader.integer(4))
            try reader.skip(2)
        }
        try reader.skip(header.characters + header.leaps * 12 + header.standards + header.universals)
        guard let first = types.first, indexes.allSatisfy({ Int($0) < types.count }) else {
            throw Flaw(reason: "it refers to a time type that it does not define")
        }
        guard types.allSatisfy({ abs($0) <= ZoneFooter.largestOffset }),
            zip(changes, changes.dropFirst()).allSatisfy(<), changes.allSatisfy({ abs($0) < 1 << 60 })
        else { throw Flaw(reason: "its times are not in order") }
        self.changes = changes
        offsets = [first] + indexes.map { types[Int($0)] }
        footer = try reader.footer().map { (text) throws(Flaw) in try ZoneFooter(text) }
    }

    /// Returns the period that contains a time, in seconds since 1970.
    func period(at time: Int64) -> Period {
        var (low, high) = (0, changes.count)
        while low < high {
            let middle = (low + high) / 2
            if changes[middle] <= time { low = middle + 1 } else { high = middle }
        }
        let start = low == 0 ? Int64.min : changes[low - 1]
        guard low == changes.count, let footer else {
            return Period(start: start, end: low < changes.count ? changes[low] : .max, offset: offsets[low])
        }
        return footer.period(at: time, after: start, offset: offsets[low])
    }
}

/// Reads the parts of a TZif file in order.
private struct TZifReader {
    struct Header {
        let universals, standards, leaps, times, types, characters: Int

        /// The size of the following data in bytes, if a time takes four.
        var length: Int { times * 5 + types * 6 + characters + leaps * 8 + standards + universals }
    }

    private let data: [UInt8]
    private var offset = 0

    init(_ data: [UInt8]) { self.data = data }

    mutating func bytes(_ count: Int) throws(ZoneRules.Flaw) -> ArraySlice<UInt8> {
        guard count <= data.count - offset else { throw ZoneRules.Flaw(reason: "it ends too early") }
        defer { offset += count }
        return data[offset..<offset + count]
    }

    mutating func skip(_ count: Int) throws(ZoneRules.Flaw) { _ = try bytes(count) }

    /// Reads a signed big-endian number of 4 or 8 bytes.
    mutating func integer(_ size: Int) throws(ZoneRules.Flaw) -> Int64 {
        let value = try bytes(size).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        return size == 8 ? Int64(bitPattern: value) : Int64(Int32(truncatingIfNeeded: value))
    }

    mutating func header() throws(ZoneRules.Flaw) -> Header {
        guard try Array(bytes(4)) == Array("TZif".utf8) else { throw ZoneRules.Flaw(reason: "it is not a TZif file") }
        guard try bytes(1).first != 0 else { throw ZoneRules.Flaw(reason: "it has 32-bit times only") }
        try skip(15)
        var counts: [Int] = []
        for _ in 0..<6 {
            let count = try integer(4)
            // Bounded by the longest file, so that sums cannot overflow.
            guard (0...Int64(ZoneRules.longest)).contains(count) else {
                throw ZoneRules.Flaw(reason: "it ends too early")
            }
            counts.append(Int(count))
        }
        return Header(
            universals: counts[0], standards: counts[1], leaps: counts[2], times: counts[3],
            types: counts[4], characters: counts[5])
    }

    /// Reads the text between the two line feeds at the end; nil if it is empty.
    mutating func footer() throws(ZoneRules.Flaw) -> String? {
        guard try bytes(1).first == UInt8(ascii: "\n"), let end = data[offset...].firstIndex(of: UInt8(ascii: "\n"))
        else { throw ZoneRules.Flaw(reason: "it ends without its footer") }
        return offset < end ? String(decoding: data[offset..<end], as: UTF8.self) : nil
    }
}
