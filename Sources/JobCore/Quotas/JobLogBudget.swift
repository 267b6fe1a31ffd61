import JobModel

/// Bounds how many entries on jobs go into the log: a thousand at once and a hundred a second, as journald drops everything of a
/// service that writes much more, including what is said of the daemon itself.
struct JobLogBudget {
    static let most = 1000.0
    private static let perSecond = 100.0

    private var left = most
    private var countedAt: Int64 = 0
    private var leftOut = 0

    /// Whether an entry is written at this monotonic time: then how many were left out since the last one.
    mutating func admit(at now: Int64) -> Int? {
        let seconds = Double(max(0, now.saturatingSubtracting(countedAt))) / 1e9
        left = min(Self.most, left + seconds * Self.perSecond)
        countedAt = now
        guard left >= 1 else {
            leftOut += 1
            return nil
        }
        left -= 1
        defer { leftOut = 0 }
        return leftOut
    }
}
