/// The layout of the file that keeps the output of one attempt of a program: its beginning and its end.
///
/// The beginning, half of the limit, stays; behind it, a ring takes the latest bytes. The ring has room for one unit
/// more than the other half, which is being replaced while the rest can be read, so a reader needs only the file, even
/// while the program runs or after the daemon was killed. In front of each eight bytes, a byte has a bit for each of
/// them, which says whether it is of standard error. Numbers have the machine's byte order.
enum OutputLog {
    enum Stream: Int, Sendable { case out, err }

    private static let longestUnit: Int64 = 32 << 10

    struct Head: BitwiseCopyable {
        var limit: UInt64
        /// The bytes of output that were written, and those that were dropped after them for lack of room.
        var size: UInt64 = 0
        var dropped: UInt64 = 0

        init(limit: Int) { self.limit = UInt64(limit) }

        /// The bytes that are kept of the beginning, and the most of the end.
        var beginning: Int64 { Int64(limit / 2 + limit % 2) }
        private var end: Int64 { Int64(limit / 2) }

        /// The bytes of output for which room is made at a time, and within which a write stays.
        var unit: Int64 { min(OutputLog.longestUnit, (beginning + 7) / 8 * 8) }
        var unitSpace: Int64 { unit / 8 * 9 }

        /// Whether the numbers can be those of a log.
        var isValid: Bool { (1..<1 << 40).contains(limit) && size < 1 << 62 && dropped < 1 << 62 }

        /// Where the kept part of the beginning ends, and where the kept part of the end begins: equal if nothing is missing.
        var gap: Range<Int64> {
            let (size, first) = (Int64(size), min(beginning, Int64(size)))
            return first..<(size <= beginning + end ? first : max(beginning, size - end))
        }

        /// The place of a byte of output among all places, and how many bytes one write can put there.
        func place(of offset: Int64) -> (place: Int64, room: Int) {
            var (place, rest) = (offset, beginning - offset)
            if offset >= beginning {
                let ring = (end + unit + 7) / 8 * 8
                let index = (offset - beginning) % ring
                (place, rest) = ((beginning + 7) / 8 * 8 + index, ring - index)
            }
            return (place, Int(min(rest, unit - place % unit)))
        }

        /// The position in the file of the group with the bits of a place.
        static func position(ofGroupAt place: Int64) -> Int64 { Int64(MemoryLayout<Head>.size) + place / 8 * 9 }
    }
}
