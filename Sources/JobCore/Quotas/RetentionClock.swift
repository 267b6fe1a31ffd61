import JobModel

/// The time by which finished jobs grow old: the time of day, but a leap of it forwards counts only once it has lasted.
///
/// What is purged does not come back. A clock that a machine starts with, or that somebody sets years ahead, is put right
/// after a while as a rule, and nothing may be gone by then. That a suspended machine wakes up looks the same, and costs
/// nothing but that jobs stay a little longer; their count and bytes are bounded all the while.
struct RetentionClock {
    /// How long a leap has to last, in seconds, unless jobs are to be kept for less.
    private static let patience = 86_400.0
    /// What the two clocks may differ by since the last look without being a leap, in seconds.
    private static let tolerance = 60.0

    private var time: Timestamp
    private var monotonic: Int64
    /// When the leap was seen that the time of day is ahead by now.
    private var leaptAt: Int64?

    /// After a start: all that was between the last end of a job and now may be a leap.
    init(at now: CoreTime, lastEnd: Timestamp?) {
        time = min(now.wall, lastEnd ?? now.wall)
        monotonic = now.monotonic
    }

    /// The time now, where finished jobs are kept for `age` seconds.
    mutating func now(_ now: CoreTime, age: Double) -> Timestamp {
        let passed = Double(now.monotonic.subtractingReportingOverflow(monotonic).partialValue) / 1e9
        let expected = time.adding(seconds: max(0, passed))
        monotonic = now.monotonic
        let isAhead = now.wall > expected.adding(seconds: Self.tolerance)
        leaptAt = isAhead ? leaptAt ?? now.monotonic : nil
        let isLasting = secondsToBelieve(now, age: age).map { $0 <= 0 } ?? true
        if isLasting { leaptAt = nil }
        time = isLasting ? now.wall : expected
        return time
    }

    /// How long the leap has still to last; nil where there is none.
    func secondsToBelieve(_ now: CoreTime, age: Double) -> Double? {
        leaptAt.map { min(age, Self.patience) - Double(now.monotonic - $0) / 1e9 }
    }
}
