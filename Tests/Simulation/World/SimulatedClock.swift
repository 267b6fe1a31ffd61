import JobModel
import JobCore

/// The two clocks of a simulation: a steady one and the time of day.
struct SimulatedClock {
    static let second: Int64 = 1_000_000
    /// 2026-01-01T00:00:00Z.
    private static let start: Int64 = 1_767_225_600_000

    /// Microseconds since the simulation began.
    private(set) var elapsed: Int64 = 0
    /// The error of the time of day, in milliseconds.
    private(set) var error: Int64 = 0

    var wall: Timestamp { Timestamp(milliseconds: Self.start + elapsed / 1000 + error) }
    var steady: SteadyTime { elapsed / 1000 + 1000 }
    var hours: Double { Double(elapsed) / 3.6e9 }

    func moment(random: Double) -> CoreMoment { CoreMoment(wall: wall, steady: steady, random: random) }

    mutating func advance(to time: Int64) { elapsed = max(elapsed, time) }
    mutating func setWrong(by milliseconds: Int64) { error = milliseconds }

    /// Returns the elapsed time at which the earlier of these is due.
    func elapsed(of next: (steady: SteadyTime?, wall: Timestamp?)) -> Int64? {
        let steady = next.steady.map { ($0 - 1000).multipliedSaturating(by: 1000) }
        let wall = next.wall.map {
            ($0.milliseconds.saturatingSubtracting(error + Self.start)).multipliedSaturating(by: 1000)
        }
        switch (steady, wall) {
        case (let first?, let second?): return min(first, second)
        default: return steady ?? wall
        }
    }
}

extension Int64 {
    fileprivate func multipliedSaturating(by factor: Int64) -> Int64 {
        let (product, overflow) = multipliedReportingOverflow(by: factor)
        return overflow ? (self < 0 ? .min : .max) : product
    }
}
