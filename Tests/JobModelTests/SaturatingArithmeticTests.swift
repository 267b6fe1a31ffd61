import JobModel
import Testing

@Suite struct SaturatingArithmeticTests {
    private static let extremes: [Int64] = [.min, .min + 1, -1 << 62, -2, -1, 0, 1, 2, 1 << 62, .max - 1, .max]

    /// What 128 bits have room for, cut to 64.
    private func cut(_ value: Int128) -> Int64 { Int64(clamping: value) }

    @Test(arguments: extremes) func results_areTheNearest_whenTrueOnesDoNotFit(left: Int64) {
        for right in Self.extremes {
            #expect(left.saturatingAdding(right) == cut(Int128(left) + Int128(right)))
            #expect(left.saturatingSubtracting(right) == cut(Int128(left) - Int128(right)))
            #expect(left.saturatingMultiplied(by: right) == cut(Int128(left) * Int128(right)))
        }
    }

    @Test func results_stayWithinRange_whenNumbersHaveNoSign() {
        #expect(UInt64.max.saturatingAdding(1) == .max)
        #expect(UInt64(1).saturatingSubtracting(2) == 0)
        #expect(UInt64.max.saturatingMultiplied(by: 2) == .max)
        #expect(UInt64(3).saturatingSubtracting(2) == 1)
    }

    @Test(
        arguments: [
            (0.0, 0), (-0.0, 0), (1.9, 1), (-1.9, -1), (1e18, 1_000_000_000_000_000_000), (9.3e18, .max),
            (-9.3e18, .min), (9_223_372_036_854_775_808, .max), (-9_223_372_036_854_775_808, .min), (.infinity, .max),
            (-.infinity, .min), (.nan, 0), (.signalingNaN, 0), (.greatestFiniteMagnitude, .max),
            (.leastNonzeroMagnitude, 0),
        ] as [(Double, Int64)])
    func number_isTheNearest_whenMadeFromFraction(value: Double, expected: Int64) {
        #expect(Int64(saturating: value) == expected)
    }
}
