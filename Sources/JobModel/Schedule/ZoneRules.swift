/// When a zone's clocks are changed, and what they are ahead of UTC in between: what a TZif file (RFC 9636) says.
///
/// Behind the last change that the file lists, its footer says how the zone goes on, year by year.
package struct ZoneRules: Sendable, Hashable {
    /// A time between two changes.
    struct Period: Equatable {
        /// The seconds since 1970 with which it begins.
        var start: Int64
        /// And those with which the next one does.
        var end: Int64
        /// Seconds that local time is ahead of UTC.
        var offset: Int64
    }

    /// Why bytes are no rules of a zone, as a part of a sentence.
    package struct Flaw: Error, Equatable {
        package let reason: String
    }

    /// Bytes of the longest file that is read; the longest that there is has 4 KiB.
    package static let longest = 64 << 10

    private let changes: [Int64]
    /// One more than there are changes: the first holds before all of them.
    private let offsets: [Int64]
    private let footer: ZoneFooter?

    /// Coordinated Universal Time, which is the same everywhere and whatever files there are.
    package static let utc = ZoneRules(changes: [], offsets: [0], footer: nil)

    init(changes: [Int64], offsets: [Int64], footer: ZoneFooter?) {
        self.changes = changes
        self.offsets = offsets
        self.footer = footer
    }

    /// The rules that a file of these bytes holds.
    package init(tzif bytes: [UInt8]) throws(Flaw) {
        guard bytes.count <= Self.longest else { throw Flaw(reason: "it is longer than \(Self.longest) bytes") }
        var reader = TZifReader(bytes)
        var header = try reader.header()
        if header.version > 0 {
            // Times of 32 bits come first, for readers that know no others.
            try reader.skip(header.length(timeSize: 4))
            header = try reader.header()
        }
        let timeSize = header.version > 0 ? 8 : 4
        var changes: [Int64] = []
        for _ in 0..<header.times { changes.append(try reader.integer(timeSize)) }
        let indexes = try reader.bytes(header.times)
        var types: [Int64] = []
        for _ in 0..<header.types {
            types.append(try reader.integer(4))
            try reader.skip(2)
        }
        try reader.skip(header.characters + header.leaps * (timeSize + 4) + header.standards + header.universals)
        guard let first = types.first, indexes.allSatisfy({ Int($0) < types.count }) else {
            throw Flaw(reason: "it names a time that it does not describe")
        }
        guard types.allSatisfy({ abs($0) <= ZoneFooter.largestOffset }),
            zip(changes, changes.dropFirst()).allSatisfy(<), changes.allSatisfy({ abs($0) < 1 << 60 })
        else { throw Flaw(reason: "its times are not in order") }
        self.changes = changes
        offsets = [first] + indexes.map { types[Int($0)] }
        footer = try header.version > 0 ? reader.footer().map { (text) throws(Flaw) in try ZoneFooter(text) } : nil
    }

    /// The period that a time, in seconds since 1970, lies in.
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

/// Reads the parts of a TZif file, one after another.
private struct TZifReader {
    struct Header {
        let version: UInt8
        let universals, standards, leaps, times, types, characters: Int

        /// Bytes of what follows, where a time takes `timeSize`.
        func length(timeSize: Int) -> Int {
            times * (timeSize + 1) + types * 6 + characters + leaps * (timeSize + 4) + standards + universals
        }
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

    /// A big-endian number with a sign, of 4 or 8 bytes.
    mutating func integer(_ size: Int) throws(ZoneRules.Flaw) -> Int64 {
        let value = try bytes(size).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        return size == 8 ? Int64(bitPattern: value) : Int64(Int32(truncatingIfNeeded: value))
    }

    mutating func header() throws(ZoneRules.Flaw) -> Header {
        guard try Array(bytes(4)) == Array("TZif".utf8) else { throw ZoneRules.Flaw(reason: "it is no TZif file") }
        let version = try bytes(1).first ?? 0
        try skip(15)
        var counts: [Int] = []
        for _ in 0..<6 {
            let count = try integer(4)
            // Beyond the longest file, so that no sum of them can be too large.
            guard (0...Int64(ZoneRules.longest)).contains(count) else {
                throw ZoneRules.Flaw(reason: "it ends too early")
            }
            counts.append(Int(count))
        }
        return Header(
            version: version, universals: counts[0], standards: counts[1], leaps: counts[2], times: counts[3],
            types: counts[4], characters: counts[5])
    }

    /// The text between the two line feeds at the end; nil where it is empty.
    mutating func footer() throws(ZoneRules.Flaw) -> [UInt8]? {
        guard try bytes(1).first == UInt8(ascii: "\n"), let end = data[offset...].firstIndex(of: UInt8(ascii: "\n"))
        else {
            throw ZoneRules.Flaw(reason: "it ends without its footer")
        }
        return offset < end ? Array(data[offset..<end]) : nil
    }
}
