@testable import DataSources
import TestSupport
import Testing

/// Who fetches which bytes.
@Suite struct SegmentMapTests {
    private static func ranges(_ text: String) throws -> ByteRanges { try #require(ByteRanges(text)) }

    @Test func ranges_areJoined_whereTheyTouch() throws {
        var ranges = ByteRanges()
        for range: Range<Int64> in [10..<20, 40..<50, 0..<5, 20..<30, 60..<60, 29..<41] {
            ranges.insert(contentsOf: range)
        }
        #expect(ranges.text == "0-5,10-50")
        #expect(ranges.count == 45)
        #expect(ranges.prefix == 5)
        #expect(ranges.firstGap(below: 100) == 5..<10)
        #expect(ranges.below(12).text == "0-5,10-12")
        #expect(try Self.ranges("0-50").firstGap(below: 50) == nil)
        #expect(try Self.ranges("").count == 0)
    }

    @Test(arguments: ["0-5", "1-9223372036854775807", "", "0-1,2-3,5-8"]) func text_isReadBack(text: String) throws {
        #expect(try Self.ranges(text).text == text)
    }

    @Test(arguments: [
        "5-5", "6-5", "0-5,5-6", "0-5,3-9", "5-6,0-1", "-1-5", "0-9223372036854775808", "0", "0-", "0-5,", ",", "+0-5",
        "0--5",
    ])
    func text_isRefused_whichWritesNoRanges(text: String) { #expect(ByteRanges(text) == nil) }

    @Test func file_isSharedOut_fromItsBeginning() throws {
        var map = SegmentMap(total: 1 << 20, connections: 4)
        let segments = (0..<4).map { _ in map.begin() }
        #expect(
            segments.compactMap { $0.flatMap { map.rest(of: $0) } } == [
                0..<262_144, 262_144..<524_288, 524_288..<786_432, 786_432..<1_048_576,
            ])
        // The first of the largest is split in half for one more, and so on until halves would be too small.
        var count = 4
        while map.begin() != nil { count += 1 }
        #expect(count == 16)
    }

    @Test func smallFile_isNotSplitBelowTheSmallestPiece() throws {
        var map = SegmentMap(total: 150_000, connections: 16)
        let first = try #require(map.begin().flatMap { map.rest(of: $0) })
        let second = try #require(map.begin().flatMap { map.rest(of: $0) })
        #expect(first == 0..<65_536)
        #expect(second == 65_536..<150_000)
        #expect(map.begin() == nil)
    }

    /// Connections that come, write, fail and end in any order fetch each byte once, and nothing is forgotten.
    @Test(arguments: 0..<200 as Range<UInt64>) func everyByte_isFetchedOnce(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let total = Int64.random(in: 1...4_000_000, using: &random)
        var before = ByteRanges()
        for _ in 0..<Int.random(in: 0...5, using: &random) {
            let start = Int64.random(in: 0..<total, using: &random)
            before.insert(contentsOf: start..<Int64.random(in: start..<total, using: &random) + 1)
        }
        var map = SegmentMap(total: total, taken: before, connections: Int.random(in: 1...16, using: &random))
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
