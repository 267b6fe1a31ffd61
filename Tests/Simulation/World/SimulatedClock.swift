import JobCore
import JobModel

/// The two clocks of a simulation: one that nobody sets, and the time of day.
struct SimulatedClock {
    static let second: Int64 = 1_000_000_000
    /// 2026-01-01T00:00:00Z.
    private static let start: Int64 = 1_767_225_600_000

    /// Nanoseconds since the simulation began.
    private(set) var elapsed: Int64 = 0
    /// By how many milliseconds the time of day is wrong.
    private(set) var error: Int64 = 0

    var now: CoreTime { CoreTime(wall: wall, monotonic: elapsed + Self.second) }
    var wall: Timestamp { Timestamp(milliseconds: Self.start + elapsed / 1_000_000 + error) }
    var hours: Double { Double(elapsed) / 3.6e12 }

    mutating func advance(to time: Int64) { elapsed = max(elapsed, time) }

    mutating func setWrong(by milliseconds: Int64) { error = milliseconds }

    /// The elapsed time at which what the core waits for has come.
    func elapsed(of wake: CoreWake) -> Int64? {
        let monotonic = wake.monotonic.map { $0 - Self.second }
        // Rounded up to where `wall` shows that millisecond.
        let wall = wake.wall.map { ($0.milliseconds - error - Self.start).multipliedSaturating(by: 1_000_000) }
        switch (monotonic, wall) {
        case (let first?, let second?): return min(first, second)
        default: return monotonic ?? wall
        }
    }
}

extension Int64 {
    fileprivate func multipliedSaturating(by factor: Int64) -> Int64 {
        let (product, overflow) = multipliedReportingOverflow(by: factor)
        return overflow ? (self < 0 ? .min : .max) : product
    }
}
