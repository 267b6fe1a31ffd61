/// Which bytes of a file have come, and which connection fetches which of the others.
///
/// Segments are given out from the beginning of the file on, so that what is there is nearly a prefix of it, which can be hashed
/// while the rest is fetched. Once there is none left, the largest remainder is split for whichever connection asks.
struct SegmentMap: Sendable {
    typealias ID = Int

    /// Nothing is split into fewer bytes.
    static let smallest: Int64 = 64 << 10
    /// Segments of a large file: long enough for a request to cost nothing, short enough for the prefix to keep up.
    private static let usual: ClosedRange<Int64> = 8 << 20...256 << 20

    let total: Int64
    /// What is written, or came and is being written.
    private(set) var taken: ByteRanges
    /// What each connection has still to fetch.
    private var segments: [ID: Range<Int64>] = [:]
    private var lastID: ID = 0
    private let size: Int64

    init(total: Int64, taken: ByteRanges = ByteRanges(), connections: Int) {
        self.total = total
        self.taken = taken.below(total)
        let connections = Int64(max(1, connections))
        let share = max(Self.smallest, (total - 1) / connections + 1)
        size = min(share, max(Self.usual.lowerBound, min(Self.usual.upperBound, total / (connections * 16))))
    }

    /// A segment for a connection that has none; nil where there is nothing for it to do.
    mutating func begin() -> ID? {
        var known = taken
        for segment in segments.values { known.insert(segment) }
        if let gap = known.firstGap(below: total) {
            let isWhole = gap.upperBound - gap.lowerBound < size + Self.smallest
            return add(gap.lowerBound..<(isWhole ? gap.upperBound : gap.lowerBound + size))
        }
        guard let (id, segment) = segments.max(by: { $0.value.count < $1.value.count }),
            segment.count >= 2 * Self.smallest
        else { return nil }
        let middle = segment.lowerBound + Int64(segment.count) / 2
        segments[id] = segment.lowerBound..<middle
        return add(middle..<segment.upperBound)
    }

    private mutating func add(_ range: Range<Int64>) -> ID {
        lastID += 1
        segments[lastID] = range
        return lastID
    }

    /// What is still to be fetched of a segment; nil where that is nothing.
    func rest(of id: ID) -> Range<Int64>? { segments[id].flatMap { $0.isEmpty ? nil : $0 } }

    /// How many of `count` bytes that came for a segment, of an answer that ends at `end`, are its own, and where they go: the
    /// rest of it may have been given to another, and a server can send more than it said.
    mutating func take(_ count: Int, for id: ID, upTo end: Int64) -> (offset: Int64, count: Int) {
        guard let segment = segments[id] else { return (0, 0) }
        let next = max(segment.lowerBound, min(segment.lowerBound + Int64(count), segment.upperBound, end))
        taken.insert(segment.lowerBound..<next)
        segments[id] = next..<segment.upperBound
        return (segment.lowerBound, Int(next - segment.lowerBound))
    }

    /// Its connection is done with a segment; what has not come of it is another's to fetch.
    mutating func end(_ id: ID) { segments[id] = nil }
}
