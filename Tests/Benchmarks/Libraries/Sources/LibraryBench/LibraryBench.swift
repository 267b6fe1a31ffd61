import Foundation

/// Compares our own code with a library, or a plainer way, for the same work: `librarybench [ROW]`.
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
    /// Does the work this many times. Returns a number that depends on the results, so that the compiler omits none of
    /// the work.
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

    /// Measures in rounds of some milliseconds. Both run in each round and take turns at going first, so disturbances
    /// affect both.
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

/// A median and its interquartile range.
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
