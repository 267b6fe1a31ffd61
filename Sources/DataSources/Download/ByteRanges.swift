import JobModel

/// Some of the bytes of a file, as sorted ranges that neither overlap nor touch.
struct ByteRanges: Sendable, Hashable {
    private(set) var ranges: [Range<Int64>] = []

    init() {}

    init(_ range: Range<Int64>) { insert(range) }

    /// The number of bytes.
    var count: Int64 { ranges.reduce(0) { $0 + Int64($1.count) } }

    /// The number of bytes before the first gap.
    var prefix: Int64 { ranges.first.flatMap { $0.lowerBound == 0 ? $0.upperBound : nil } ?? 0 }

    mutating func insert(_ range: Range<Int64>) {
        guard !range.isEmpty else { return }
        // The first range that touches the new one, and the first behind all that do.
        let first = ranges.firstIndex { $0.upperBound >= range.lowerBound } ?? ranges.endIndex
        let end = ranges[first...].firstIndex { $0.lowerBound > range.upperBound } ?? ranges.endIndex
        let touching = ranges[first..<end]
        let lower = min(range.lowerBound, touching.first?.lowerBound ?? range.lowerBound)
        let upper = max(range.upperBound, touching.last?.upperBound ?? range.upperBound)
        ranges.replaceSubrange(first..<end, with: [lower..<upper])
    }

    /// The bytes below `end`.
    func below(_ end: Int64) -> ByteRanges {
        var below = ByteRanges()
        for range in ranges where range.lowerBound < end { below.insert(range.lowerBound..<min(range.upperBound, end)) }
        return below
    }

    /// The first gap below `total`.
    func firstGap(below total: Int64) -> Range<Int64>? {
        var start: Int64 = 0
        for range in ranges {
            if range.lowerBound > start { return start..<min(range.lowerBound, total) }
            start = range.upperBound
        }
        return start < total ? start..<total : nil
    }
}

extension ByteRanges {
    /// The ranges as checkpoints store them: `0-1024,4096-8192`, where each end is the byte behind the range.
    var text: String { ranges.map { "\($0.lowerBound)-\($0.upperBound)" }.joined(separator: ",") }

    /// Reads ``text``; nil for any other text.
    init?(_ text: some StringProtocol) {
        for part in text.split(separator: ",", omittingEmptySubsequences: false) where !text.isEmpty {
            let ends = part.split(separator: "-", omittingEmptySubsequences: false)
            guard ends.count == 2, let start = Decimal.number(ends[0]), let end = Decimal.number(ends[1]),
                start < end, start > ranges.last?.upperBound ?? -1
            else { return nil }
            ranges.append(start..<end)
        }
    }
}
