/// The random numbers of a simulation: xoshiro256**, seeded by SplitMix64. A seed gives the same numbers everywhere.
struct SeededGenerator {
    private var state: (UInt64, UInt64, UInt64, UInt64)

    init(seed: UInt64) {
        var mixed = seed
        func next() -> UInt64 {
            mixed &+= 0x9E37_79B9_7F4A_7C15
            var value = mixed
            value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
            value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
            return value ^ (value >> 31)
        }
        state = (next(), next(), next(), next())
    }

    mutating func next() -> UInt64 {
        let result = Self.rotate(state.1 &* 5, 7) &* 9
        let shifted = state.1 << 17
        state.2 ^= state.0
        state.3 ^= state.1
        state.1 ^= state.2
        state.0 ^= state.3
        state.2 ^= shifted
        state.3 = Self.rotate(state.3, 45)
        return result
    }

    private static func rotate(_ value: UInt64, _ count: UInt64) -> UInt64 {
        (value << count) | (value >> (64 - count))
    }

    /// Returns a number in 0 ..< 1.
    mutating func unit() -> Double { Double(next() >> 11) * 0x1p-53 }

    /// Returns a number in 0 ..< `count`.
    mutating func below(_ count: Int) -> Int { count <= 1 ? 0 : Int(next() % UInt64(count)) }

    mutating func within(_ range: ClosedRange<Int>) -> Int { range.lowerBound + below(range.count) }

    mutating func chance(_ probability: Double) -> Bool { unit() < probability }

    /// Returns an element of a non-empty array.
    mutating func pick<Element>(_ elements: [Element]) -> Element { elements[below(elements.count)] }

    mutating func element<Element>(of elements: [Element]) -> Element? { elements.isEmpty ? nil : pick(elements) }

    /// Returns a log-uniform number: as likely between 1 and 10 as between 10 and 100.
    mutating func spread(_ low: Double, _ high: Double) -> Double {
        low * Self.power(high / low, unit())
    }

    /// Returns the time to the next event at a mean interval of `mean`.
    mutating func pause(mean: Double) -> Double { -mean * Self.logarithm(1 - unit()) }

    /// Returns the index of a weighted choice.
    mutating func choose(_ weights: [Int]) -> Int {
        var left = below(weights.reduce(0, +))
        for (index, weight) in weights.enumerated() {
            left -= weight
            if left < 0 { return index }
        }
        return 0
    }

    // The last bit of the C library's functions may differ between machines, and so would the trace.
    private static func logarithm(_ value: Double) -> Double {
        guard value > 0 else { return -40 }
        let exponent = Double(value.exponent)
        let ratio = (value.significand - 1) / (value.significand + 1)
        let square = ratio * ratio
        var (term, sum, divisor) = (ratio, 0.0, 1.0)
        for _ in 0..<18 {
            sum += term / divisor
            term *= square
            divisor += 2
        }
        return 2 * sum + exponent * 0.693_147_180_559_945_3
    }

    private static func power(_ base: Double, _ exponent: Double) -> Double {
        let value = logarithm(base) * exponent
        let halvings = 10
        var (term, sum) = (1.0, 1.0)
        let part = value / 1024
        for index in 1..<12 {
            term *= part / Double(index)
            sum += term
        }
        for _ in 0..<halvings { sum *= sum }
        return sum
    }
}
