import JobModel

/// Limits log entries about jobs to bursts of 1000 and 100 per second.
/// journald drops the excess of a service that logs much more, including messages about the daemon itself.
struct JobLogBudget {
    private static let most = 1000.0
    private static let perSecond = 100.0
    /// Entries reserved for failures.
    private static let reserve = 300.0

    private var left = most
    private var countedAt: SteadyTime = 0
    private var leftOut = 0

    /// Returns the number of entries dropped since the last one, or nil if this entry is dropped too.
    mutating func admit(isTrouble: Bool, at now: SteadyTime) -> Int? {
        left = min(Self.most, left + Double(max(0, now.saturatingSubtracting(countedAt))) / 1000 * Self.perSecond)
        countedAt = now
        guard left >= 1 + (isTrouble ? 0 : Self.reserve) else {
            leftOut += 1
            return nil
        }
        left -= 1
        defer { leftOut = 0 }
        return leftOut
    }
}
