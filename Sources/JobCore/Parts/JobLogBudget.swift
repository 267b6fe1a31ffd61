import JobModel

/// Bounds how many entries on jobs go into the log: a thousand at once and a hundred a second, as journald drops everything
/// of a service that writes much more, also what is said of the daemon itself.
struct JobLogBudget {
    private static let most = 1000.0
    private static let perSecond = 100.0
    /// What is left for what went wrong.
    private static let reserve = 300.0

    private var left = most
    private var countedAt: SteadyTime = 0
    private var leftOut = 0

    /// How many entries were left out since the last one, where one may be written now; nil where it may not.
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
