@testable import DataSources
import TestSupport
import Testing

/// Who fetches which bytes.
@Suite struct SegmentMapTests {
    private static func ranges(_ text: String) throws -> ByteRanges { try #require(ByteRanges(text)) }

    @Test(arguments: ["0-5", "1-9223372036854775807", "", "0-1,2-3,5-8"]) func text_isReadBack(text: String) throws {
        #expect(try Self.ranges(text).text == text)
    }

    @Test(arguments: [
        "5-5", "6-5", "0-5,5-6", "0-5,3-9", "5-6,0-1", "-1-5", "0-9223372036854775808", "0", "0-", "0-5,", ",", "+0-5",
        "0--5",
    ])
    func text_isRefused_whichWritesNoRanges(text: String) { #expect(ByteRanges(text) == nil) }

    /// Connections that come, write, fail and end in any order fetch each byte once, and nothing is forgotten.
    @Test(arguments: 0..<200 as Range<UInt64>) func everyByte_isFetchedOnce(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let total = Int64.random(in: 1...4_000_000, using: &random)
        var before = ByteRanges()
        for _ in 0..<Int.random(in: 0...5, using: &random) {
            let start = Int64.random(in: 0..<total, using: &random)
            before.insert(contentsOf: start..<Int64.random(in: start..<total, using: &random) + 1)
        }
        var map = SegmentMap(total: total, taken: before)
        var fetched = ByteRanges()
        var working: [SegmentMap.ID] = []
        while map.taken.count < total {
            if working.count < 16, Bool.random(using: &random), let segment = map.begin() { working.append(segment) }
            guard let index = working.indices.randomElement(using: &random) else { continue }
            let segment = working[index]
            guard map.rest(of: segment) != nil else {
                map.end(segment)
                working.remove(at: index)
                continue
            }
            if Int.random(in: 0..<20, using: &random) == 0 {
                map.end(segment)
                working.remove(at: index)
                continue
            }
            let (offset, count) = map.take(Int.random(in: 1...200_000, using: &random), for: segment, upTo: total)
            // Another may split it while it is being written.
            if Bool.random(using: &random), let other = map.begin() { working.append(other) }
            let range = offset..<offset + Int64(count)
            var both = fetched
            both.insert(contentsOf: range)
            try #require(both.count == fetched.count + Int64(count), "\(range) was fetched twice")
            fetched = both
        }
        var all = before
        all.insert(contentsOf: 0..<0)
        for range in fetched.ranges { all.insert(contentsOf: range) }
        #expect(all.text == "0-\(total)")
        #expect(fetched.count + before.count == total)
    }
}
