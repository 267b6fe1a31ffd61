/// Bounds how many entries on jobs go into the log: a thousand at once and a hundred a second, as journald drops everything of a
/// service that writes much more, also what is said of the daemon itself.
///
/// The last three hundred are for what went wrong.
struct JobLogBudget {
    private static let most = 1000.0
    private static let perSecond = 100.0
    private static let reserve = 300.0

    private var left = most
    private var countedAt: Int64 = 0
    private var leftOut = 0

    /// Whether an entry is written at this monotonic time: then how many were left out since the last one.
    mutating func admit(isTrouble: Bool, at now: Int64) -> Int? {
        let passed = Double(max(0, now.subtractingReportingOverflow(countedAt).partialValue)) / 1e9
        left = min(Self.most, left + passed * Self.perSecond)
        countedAt = now
        guard left >= (isTrouble ? 1 : Self.reserve + 1) else {
            leftOut += 1
            return nil
        }
        left -= 1
        defer { leftOut = 0 }
        return leftOut
    }
}
