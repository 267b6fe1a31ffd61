/// Which bytes of a file are written, and which connection fetches which of the others.
///
/// Segments are given out from the beginning of the file on, so that what is there is nearly a prefix of it, which can be hashed
/// while the rest is fetched. Once there is none left, the largest remainder is split for whoever asks.
struct SegmentMap: Sendable {
    typealias ID = Int

    /// What one connection fetches.
    private struct Segment {
        /// Up to here it is written.
        var written: Int64
        /// Up to here its connection has bytes that are being written.
        var claimed: Int64
        var end: Int64
    }

    /// Nothing is split into fewer bytes.
    static let smallest: Int64 = 64 << 10
    /// Segments of a large file: long enough for a request to cost nothing, short enough for the prefix to keep up.
    private static let usual: ClosedRange<Int64> = 8 << 20...256 << 20

    let total: Int64
    private(set) var written: ByteRanges
    private var segments: [ID: Segment] = [:]
    private var lastID: ID = 0
    private let size: Int64

    init(total: Int64, written: ByteRanges = ByteRanges(), connections: Int) {
        self.total = total
        self.written = written.below(total)
        let connections = Int64(max(1, connections))
        let share = max(Self.smallest, (total - 1) / connections + 1)
        size = min(share, max(Self.usual.lowerBound, min(Self.usual.upperBound, total / (connections * 16))))
    }

    var isComplete: Bool { written.prefix == total }

    /// A segment for a connection that has none; nil where there is nothing for it to do.
    mutating func begin() -> ID? {
        var known = written
        for segment in segments.values { known.insert(segment.written..<segment.end) }
        if let gap = known.firstGap(below: total) {
            let isWhole = gap.upperBound - gap.lowerBound < size + Self.smallest
            return add(gap.lowerBound..<(isWhole ? gap.upperBound : gap.lowerBound + size))
        }
        let largest = segments.max { $0.value.end - $0.value.claimed < $1.value.end - $1.value.claimed }
        guard let (id, segment) = largest, segment.end - segment.claimed >= 2 * Self.smallest else { return nil }
        let middle = segment.claimed + (segment.end - segment.claimed) / 2
        segments[id]?.end = middle
        return add(middle..<segment.end)
    }

    private mutating func add(_ range: Range<Int64>) -> ID {
        lastID += 1
        segments[lastID] = Segment(written: range.lowerBound, claimed: range.lowerBound, end: range.upperBound)
        return lastID
    }

    /// What is still to be fetched of a segment; nil where that is nothing.
    func rest(of id: ID) -> Range<Int64>? {
        guard let segment = segments[id], segment.claimed < segment.end else { return nil }
        return segment.claimed..<segment.end
    }

    /// How many of `count` bytes that came for a segment are its own, and where they go; the rest of it may have been given to
    /// another.
    mutating func claim(_ count: Int, for id: ID) -> (offset: Int64, count: Int) {
        guard let segment = segments[id] else { return (0, 0) }
        let claimed = min(Int64(count), segment.end - segment.claimed)
        segments[id]?.claimed += claimed
        return (segment.claimed, Int(claimed))
    }

    /// What was claimed last is written.
    mutating func finishWriting(_ id: ID) {
        guard let segment = segments[id] else { return }
        written.insert(segment.written..<segment.claimed)
        segments[id]?.written = segment.claimed
    }

    /// Its connection is done with a segment; what is not written of it is another's to fetch.
    mutating func end(_ id: ID) { segments[id] = nil }
}
