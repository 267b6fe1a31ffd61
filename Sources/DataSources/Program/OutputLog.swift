/// The layout of the file that keeps the output of one attempt of a program: its beginning and its end.
///
/// The beginning, half of the limit, stays; behind it, a ring takes the latest bytes. The ring has room for one unit more
/// than half of the limit, which is being replaced while the rest can be read, so a reader needs only the file, even while
/// the program runs or after the daemon was killed. The places of bytes are divided into units; each has a bit for each of
/// its bytes, which says whether the byte is of standard error, and then the bytes. Numbers have the machine's byte order.
enum OutputLog {
    enum Stream: Int, Sendable { case out, err }

    /// The most bytes of output in a unit.
    private static let longestUnit = 32 << 10

    struct Head: BitwiseCopyable {
        /// The most bytes of output that readers get.
        var limit: UInt64
        /// The bytes of output that the ring takes.
        var ring: UInt64
        /// The bytes of output that were written, and those that were dropped after them for lack of room.
        var size: UInt64 = 0
        var dropped: UInt64 = 0

        init(limit: Int) {
            self.limit = UInt64(limit)
            ring = 0
            ring = UInt64(end + unit)
        }

        /// The bytes that are kept of the beginning, and the most of the end.
        var beginning: Int64 { Int64(limit / 2 + limit % 2) }
        private var end: Int64 { Int64(limit / 2) }

        /// The bytes of output in a unit, a multiple of eight, and the bytes that it takes in the file.
        private var unit: Int64 { (min(Int64(OutputLog.longestUnit), beginning) + 7) / 8 * 8 }
        var unitSpace: Int64 { unit / 8 * 9 }

        /// Whether the numbers can be those of a log.
        var isValid: Bool {
            (1..<1 << 40).contains(limit) && ring > UInt64(unit) && ring <= UInt64(end + unit)
                && size < 1 << 62 && dropped < 1 << 62
        }

        /// The bytes of the end that are kept.
        private var keptEnd: Int64 { max(0, Int64(ring) - unit) }

        /// Where the kept part of the beginning ends, and where the kept part of the end begins: equal if nothing is missing.
        var gap: Range<Int64> {
            let (size, first) = (Int64(size), min(beginning, Int64(size)))
            return first..<(size <= beginning + keptEnd ? first : max(beginning, size - keptEnd))
        }

        /// Where the ring begins among the places of bytes.
        private var ringStart: Int64 { (beginning + 7) / 8 * 8 }

        /// The place of a byte of output, and how many bytes can be written from there on.
        func place(of offset: Int64) -> (place: Int64, room: Int) {
            let (place, room): (Int64, Int64)
            if offset < beginning {
                (place, room) = (offset, beginning - offset)
            } else {
                let index = (offset - beginning) % max(1, Int64(ring))
                (place, room) = (ringStart + index, Int64(ring) - index)
            }
            return (place, Int(min(room, unit - place % unit)))
        }

        func unit(of place: Int64) -> Int { Int(place / unit) }

        /// The positions in the file of the byte at a place, and of the byte with its bit.
        func position(of place: Int64) -> (byte: Int64, bits: Int64) {
            let start = Int64(MemoryLayout<Head>.size) + place / unit * unitSpace
            return (start + unit / 8 + place % unit, start + place % unit / 8)
        }
    }
}
