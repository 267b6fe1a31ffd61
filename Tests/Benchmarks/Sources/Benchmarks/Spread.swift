/// A median, and between what the middle half of the values lies.
struct Spread {
    let low: Double
    let median: Double
    let high: Double

    init(_ values: [Double]) {
        let sorted = values.sorted()
        func value(at share: Double) -> Double {
            let position = share * Double(sorted.count - 1)
            let index = Int(position)
            let next = min(index + 1, sorted.count - 1)
            return sorted[index] + (sorted[next] - sorted[index]) * (position - Double(index))
        }
        (low, median, high) = (value(at: 0.25), value(at: 0.5), value(at: 0.75))
    }
}
