package import JobModel

/// The time that an input comes with: the time of day, and a clock that nobody sets.
package struct CoreTime: Sendable, Hashable {
    /// Follows the time of day, also when that is set back.
    package var wall: Timestamp
    /// Nanoseconds since some moment before the daemon started; never falls.
    package var monotonic: Int64

    package init(wall: Timestamp, monotonic: Int64) {
        self.wall = wall
        self.monotonic = monotonic
    }

    /// The monotonic time `seconds` from now, at most ten years; a number that is none counts as 0.
    func monotonic(after seconds: Double) -> Int64 {
        let bounded = seconds > 0 ? min(seconds, 315_360_000) : 0
        return monotonic.addingReportingOverflow(Int64(bounded * 1e9)).partialValue
    }
}

/// When the core wants an input `time` at the latest; nil where it waits for nothing.
package struct CoreWake: Sendable, Hashable {
    package var wall: Timestamp?
    package var monotonic: Int64?

    package init(wall: Timestamp? = nil, monotonic: Int64? = nil) {
        self.wall = wall
        self.monotonic = monotonic
    }
}
