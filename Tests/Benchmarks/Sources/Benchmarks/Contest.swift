/// The same work done by several contestants, measured side by side.
struct Contest {
    /// Does the work this many times.
    typealias Work = @Sendable (_ times: Int) async throws -> Void

    let name: String
    /// How often the work is done in one measurement.
    let times: Int
    let deferred: Work
    let nio: Work
    let task: Work

    /// The results.
    struct Result {
        /// Nanoseconds of each contestant, for each time the work is done: the median of the rounds.
        let nanoseconds: [Double]
        /// DeferredKit's time in relation to that of the others in the same round.
        let toNIO: Spread
        let toTask: Spread
    }

    /// Measures in rounds. All contestants run in each round and take turns at going first, so disturbances affect all.
    func run(rounds: Int) async throws -> Result {
        var samples: [[Double]] = [[], [], []]
        let works = [deferred, nio, task]
        for work in works { try await work(times / 10 + 1) }
        for round in 0..<rounds {
            for offset in works.indices {
                let index = (round + offset) % works.count
                let start = ContinuousClock.now
                try await works[index](times)
                let (seconds, attoseconds) = (ContinuousClock.now - start).components
                samples[index].append((Double(seconds) * 1e9 + Double(attoseconds) / 1e9) / Double(times))
            }
        }
        return Result(
            nanoseconds: samples.map { Spread($0).median },
            toNIO: Spread(zip(samples[0], samples[1]).map { $0 / $1 }),
            toTask: Spread(zip(samples[0], samples[2]).map { $0 / $1 })
        )
    }
}

/// A median and its interquartile range.
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
