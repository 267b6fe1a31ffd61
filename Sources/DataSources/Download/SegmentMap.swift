import JobModel

/// Which bytes of a file have arrived, and which connection fetches which of the others.
///
/// Each connection gets an equal share of the file. When nothing is left to give out, the largest remainder is halved.
struct SegmentMap: Sendable {
    typealias ID = Int

    /// The smallest part into which a segment is split.
    static let smallest: Int64 = 64 << 10

    /// The size of the file; `Int64.max` until it is known.
    private(set) var total: Int64
    /// The bytes that have arrived, written or about to be.
    private(set) var taken: ByteRanges
    /// What each connection has still to fetch.
    private var segments: [ID: Range<Int64>] = [:]
    private var lastID: ID = 0
    private let share: Int64

    init(total: Int64?, taken: ByteRanges = ByteRanges(), connections: Int) {
        self.total = total ?? .max
        self.taken = taken.below(self.total)
        share = max(Self.smallest, (self.total - 1) / Int64(max(1, connections)) + 1)
    }

    /// Whether the whole file has arrived.
    var isComplete: Bool { taken.count == total }

    /// Gives out a segment; nil if nothing is left for another connection.
    mutating func begin() -> ID? {
        if let gap = assigned.firstGap(below: total) {
            let isWhole = gap.upperBound - gap.lowerBound - share < Self.smallest
            return add(gap.lowerBound..<(isWhole ? gap.upperBound : gap.lowerBound + share))
        }
        guard let (id, segment) = segments.max(by: { $0.value.count < $1.value.count }),
            segment.count >= 2 * Self.smallest
        else { return nil }
        let middle = segment.lowerBound + Int64(segment.count) / 2
        segments[id] = segment.lowerBound..<middle
        return add(middle..<segment.upperBound)
    }

    /// What has arrived, or is being fetched.
    private var assigned: ByteRanges {
        var assigned = taken
        for segment in segments.values { assigned.insert(contentsOf: segment) }
        return assigned
    }

    /// Adds the bytes behind a segment that no connection fetches; false if there are none.
    mutating func extend(_ id: ID) -> Bool {
        guard let segment = segments[id], segment.upperBound < total else { return false }
        let gap = ByteRanges(segment.upperBound..<total).subtracting(assigned).ranges.first
        guard let gap, gap.lowerBound == segment.upperBound else { return false }
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

    /// Sets the size of the file, once it is known.
    mutating func end(at size: Int64) {
        total = size
        segments = segments.mapValues { min($0.lowerBound, size)..<min($0.upperBound, size) }
    }

    /// Ends a segment; other connections fetch the rest of it.
    mutating func end(_ id: ID) { segments[id] = nil }
}
