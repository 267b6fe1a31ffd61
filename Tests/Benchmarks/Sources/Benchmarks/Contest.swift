/// The same work done by several contestants, measured side by side.
struct Contest {
    /// Does the work so many times.
    typealias Work = @Sendable (_ times: Int) async throws -> Void

    let name: String
    /// How often the work is done in one measurement.
    let times: Int
    let deferred: Work
    let nio: Work
    let task: Work

    /// What came out, in nanoseconds for each time.
    struct Result {
        let name: String
        let deferred: Double
        let nio: Double
        let task: Double
        /// DeferredKit's time in relation to NIO's and to Task's: the median of the rounds' ratios.
        let toNIO: Double
        let toTask: Double
    }

    /// Measures in rounds. In each all contestants run, in turn first, so that what disturbs one disturbs all.
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
            name: name,
            deferred: median(samples[0]),
            nio: median(samples[1]),
            task: median(samples[2]),
            toNIO: median(zip(samples[0], samples[1]).map { $0 / $1 }),
            toTask: median(zip(samples[0], samples[2]).map { $0 / $1 })
        )
    }

    private func median(_ values: [Double]) -> Double {
        let sorted = values.sorted()
        return sorted.count % 2 == 1
            ? sorted[sorted.count / 2] : (sorted[sorted.count / 2 - 1] + sorted[sorted.count / 2]) / 2
    }
}
