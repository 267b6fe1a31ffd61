/// Where measured values lie.
struct Spread {
    let median: Double
    let low: Double
    let high: Double

    init(_ values: [Double]) {
        let sorted = values.sorted()
        median = Self.quantile(sorted, 0.5)
        low = sorted.first ?? .nan
        high = sorted.last ?? .nan
    }

    /// The value that `part` of the sorted values do not exceed, interpolated between two values.
    static func quantile(_ sorted: [Double], _ part: Double) -> Double {
        guard let last = sorted.indices.last else { return .nan }
        let position = part * Double(last)
        let below = Int(position)
        guard below < last else { return sorted[last] }
        return sorted[below] + (sorted[below + 1] - sorted[below]) * (position - Double(below))
    }
}
