/// Some of the bytes of a file.
typealias ByteRanges = RangeSet<Int64>

extension RangeSet<Int64> {
    var count: Int64 { ranges.reduce(0) { $0 + Int64($1.count) } }

    /// The number of bytes before the first gap.
    var prefix: Int64 { ranges.first.flatMap { $0.lowerBound == 0 ? $0.upperBound : nil } ?? 0 }

    func below(_ end: Int64) -> ByteRanges { intersection(ByteRanges(0..<max(0, end))) }

    func firstGap(below total: Int64) -> Range<Int64>? { ByteRanges(0..<total).subtracting(self).ranges.first }

    /// The ranges as checkpoints store them: `0-1024,4096-8192`, where each end is the byte behind the range.
    var text: String { ranges.map { "\($0.lowerBound)-\($0.upperBound)" }.joined(separator: ",") }

    /// Reads ``text``; nil for any other text.
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
