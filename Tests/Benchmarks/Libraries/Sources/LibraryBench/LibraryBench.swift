import Foundation

/// Measures what is ours beside the library, or the plainer way, that does the same: `librarybench [ROW]`.
@main
enum LibraryBench {
    static func main() throws {
        let wanted = CommandLine.arguments.dropFirst().first ?? ""
        print("| row | ours | other | ours to other |\n| --- | --- | --- | --- |")
        for row in try Row.all() where row.name.hasPrefix(wanted) {
            let result = row.measured()
            print(
                "| \(row.name) | \(text(result.ours)) | \(text(result.other)) | "
                    + String(format: "%.2f (%.2f to %.2f) |", result.ratio.median, result.ratio.low, result.ratio.high))
        }
    }

    private static func text(_ nanoseconds: Double) -> String {
        nanoseconds < 10_000 ? String(format: "%.0f ns", nanoseconds) : String(format: "%.1f µs", nanoseconds / 1000)
    }
}

/// The same piece of work, done by us and in another way.
struct Row {
    /// Does the work so many times. Gives a number that depends on what was made, so that none of it is left out.
    typealias Work = (_ times: Int) -> Int

    let name: String
    let ours: Work
    let other: Work

    struct Result {
        /// Nanoseconds each time: the median of the rounds.
        let ours: Double
        let other: Double
        let ratio: Spread
    }

    /// Measures in rounds of some milliseconds. In each both run, in turn first, so that what disturbs one disturbs both.
    func measured(rounds: Int = 31) -> Result {
        let times = max(1, Int(5_000_000 / nanoseconds(other, 1)))
        var samples: [(ours: Double, other: Double)] = []
        for round in 0..<rounds {
            if round.isMultiple(of: 2) {
                let first = nanoseconds(ours, times)
                samples.append((first, nanoseconds(other, times)))
            } else {
                let first = nanoseconds(other, times)
                samples.append((nanoseconds(ours, times), first))
            }
        }
        return Result(
            ours: Spread(samples.map(\.ours)).median, other: Spread(samples.map(\.other)).median,
            ratio: Spread(samples.map { $0.ours / $0.other }))
    }

    private func nanoseconds(_ work: Work, _ times: Int) -> Double {
        let start = ContinuousClock.now
        let sum = work(times)
        let duration = ContinuousClock.now - start
        precondition(sum != 0, "\(name) made nothing.")
        return duration / .nanoseconds(1) / Double(times)
    }
}

/// A median, and between what the middle half of the values lies.
struct Spread {
    let low: Double
    let median: Double
    let high: Double

    init(_ values: [Double]) {
        let sorted = values.sorted()
        func value(at share: Double) -> Double { sorted[Int((share * Double(sorted.count - 1)).rounded())] }
        (low, median, high) = (value(at: 0.25), value(at: 0.5), value(at: 0.75))
    }
}
