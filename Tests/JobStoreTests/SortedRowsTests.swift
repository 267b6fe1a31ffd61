import TestSupport
import Testing

@testable import InMemoryStore

@Suite struct SortedRowsTests {
    @Test func rows_areThoseOfADictionarySorted_whateverIsDone() {
        for seed in 0..<20 as Range<UInt64> {
            var generator = SeededGenerator(seed: seed)
            var rows = SortedRows<Int, Int>(largestChunk: 8)
            var expected: [Int: Int] = [:]
            var copy: (rows: SortedRows<Int, Int>, expected: [Int: Int]) = (rows, expected)
            for step in 0..<2_000 {
                let key = Int.random(in: 0..<300, using: &generator)
                switch Int.random(in: 0..<(step < 1_500 ? 5 : 9), using: &generator) {
                case 0...1:
                    rows.set(key, step)
                    expected[key] = step
                case 2:
                    rows.change(key, or: 0) { $0 += 1 }
                    expected[key, default: 0] += 1
                case 3: copy = (rows, expected)
                default: #expect(rows.remove(key) == expected.removeValue(forKey: key))
                }
                #expect(rows.count == expected.count)
                #expect(rows[key] == expected[key])
            }
            check(rows, expected, &generator)
            check(copy.rows, copy.expected, &generator)
        }
    }

    private func check(_ rows: SortedRows<Int, Int>, _ expected: [Int: Int], _ generator: inout SeededGenerator) {
        let keys = expected.keys.sorted()
        #expect(rows.rows().map(\.key) == keys)
        #expect(rows.rows().map(\.value) == keys.map { expected[$0] ?? -1 })
        #expect(rows.descending(before: nil).map(\.key) == keys.reversed())
        #expect(rows.first == keys.first)
        for offset in -1...keys.count {
            #expect(rows.key(fromEnd: offset) == (keys.indices.contains(offset) ? keys.reversed()[offset] : nil))
        }
        for _ in 0..<50 {
            let key = Int.random(in: -1...301, using: &generator)
            #expect(rows.rows(from: key).map(\.key) == keys.filter { $0 >= key })
            #expect(rows.descending(before: key).map(\.key) == keys.filter { $0 < key }.reversed())
        }
    }

    @Test func chunks_areFull_whenKeysAscend() {
        var rows = SortedKeys<Int>(largestChunk: 16)
        for key in 0..<1_600 { rows.insert(key) }
        #expect(rows.chunkCount == 100)
        for key in 0..<1_590 { rows.remove(key) }
        #expect(rows.chunkCount == 1)
    }
}
