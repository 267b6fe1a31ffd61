import JobModel

/// Which bytes of a file have arrived, and which connection fetches which of the others.
///
/// A connection gets the first gap; when nothing is left to give out, it gets half of the largest remainder.
struct SegmentMap: Sendable {
    typealias ID = Int

    static let smallest: Int64 = 64 << 10

    /// The size of the file; `Int64.max` until it is known.
    private(set) var total: Int64
    /// The bytes that have arrived, written or about to be.
    private(set) var taken: ByteRanges
    /// What each connection has still to fetch.
    private var segments: [ID: Range<Int64>] = [:]
    private var lastID: ID = 0

    init(total: Int64?, taken: ByteRanges) {
        self.total = total ?? .max
        self.taken = taken.below(self.total)
    }

    var isComplete: Bool { taken.count == total }

    /// Gives out a segment; nil if nothing is left for another connection.
    mutating func begin() -> ID? {
        if let gap = gaps(from: 0).first { return add(gap) }
        guard let (id, segment) = segments.max(by: { $0.value.count < $1.value.count }),
            segment.count >= 2 * Self.smallest
        else { return nil }
        let middle = segment.lowerBound + Int64(segment.count) / 2
        segments[id] = segment.lowerBound..<middle
        return add(middle..<segment.upperBound)
    }

    /// What has neither arrived nor is being fetched.
    private func gaps(from start: Int64) -> ByteRanges.Ranges {
        var gaps = ByteRanges(start..<total).subtracting(taken)
        for segment in segments.values { gaps.remove(contentsOf: segment) }
        return gaps.ranges
    }

    /// Adds the bytes behind a segment that no connection fetches; false if there are none.
    mutating func extend(_ id: ID) -> Bool {
        guard let segment = segments[id], segment.upperBound < total, let gap = gaps(from: segment.upperBound).first,
            gap.lowerBound == segment.upperBound
        else { return false }
        segments[id] = segment.lowerBound..<gap.upperBound
        return true
    }

    private mutating func add(_ range: Range<Int64>) -> ID {
        lastID += 1
        segments[lastID] = range
        return lastID
    }

    /// What is still to be fetched of a segment; nil if nothing is.
    func rest(of id: ID) -> Range<Int64>? { segments[id].flatMap { $0.isEmpty ? nil : $0 } }

    /// Assigns `count` bytes that arrived for a segment; returns where to write them, and how many of them.
    ///
    /// The response ends at `end`. Bytes beyond it, and bytes of a part that was given to another connection, are
    /// dropped.
    mutating func take(_ count: Int, for id: ID, upTo end: Int64) -> (offset: Int64, count: Int) {
        guard let segment = segments[id] else { return (0, 0) }
        let bound = min(segment.upperBound, end)
        let next = max(segment.lowerBound, min(segment.lowerBound.saturatingAdding(Int64(count)), bound))
        taken.insert(contentsOf: segment.lowerBound..<next)
        segments[id] = next..<segment.upperBound
        return (segment.lowerBound, Int(next - segment.lowerBound))
    }

    mutating func end(at size: Int64) {
        total = size
        segments = segments.mapValues { min($0.lowerBound, size)..<min($0.upperBound, size) }
    }

    /// Ends a segment; other connections fetch the rest of it.
    mutating func end(_ id: ID) { segments[id] = nil }
}

typealias ByteRanges = RangeSet<Int64>

extension RangeSet<Int64> {
    var count: Int64 { ranges.reduce(0) { $0 + Int64($1.count) } }

    /// The number of bytes before the first gap.
    var prefix: Int64 { ranges.first.flatMap { $0.lowerBound == 0 ? $0.upperBound : nil } ?? 0 }

    func below(_ end: Int64) -> ByteRanges { intersection(ByteRanges(0..<max(0, end))) }

    /// The ranges as checkpoints store them: `0-1024,4096-8192`, where each end is the byte behind the range.
    var text: String { ranges.map { "\($0.lowerBound)-\($0.upperBound)" }.joined(separator: ",") }

    init?(_ text: some StringProtocol) {
        var (ranges, end) = (ByteRanges(), Int64(-1))
        for part in text.split(separator: ",", omittingEmptySubsequences: false) where !text.isEmpty {
            let ends = part.split(separator: "-", omittingEmptySubsequences: false)
            guard ends.count == 2, let start = Decimal.number(ends[0]), let next = Decimal.number(ends[1]),
                start < next, start > end
            else { return nil }
            ranges.insert(contentsOf: start..<next)
            end = next
        }
        self = ranges
    }
}
