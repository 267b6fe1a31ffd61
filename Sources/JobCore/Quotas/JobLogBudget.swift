/// Bounds how many entries on jobs go into the log: a thousand at once and a hundred a second, as journald drops everything of a
/// service that writes much more, also what is said of the daemon itself.
///
/// Each owner of jobs that are written of has an equal part, so that nobody's jobs push those of others out of the log. Of
/// each part three tenths are for what went wrong.
struct JobLogBudget {
    static let most = 1000.0
    private static let perSecond = 100.0
    private static let reserve = 0.3
    /// Owners with a part of their own; any more share one, so that many of them write little more than one.
    static let mostOwners = 64

    /// What an owner has left.
    private struct Part {
        var left: Double
        var countedAt: Int64
        var leftOut = 0
    }

    /// Nil stands for the owners without a part of their own.
    private var parts: [UInt32?: Part] = [:]
    private var prunedAt: Int64 = 0

    /// Owners that are counted now.
    var ownerCount: Int { parts.count }

    /// Whether an entry on a job of `owner` is written at this monotonic time: then how many of that owner's were left out
    /// since the last one.
    mutating func admit(isTrouble: Bool, of owner: UInt32, at now: Int64) -> Int? {
        let key = key(of: owner, at: now)
        let share = 1 / Double(max(1, parts.count + (parts[key] == nil ? 1 : 0)))
        var part = parts[key] ?? Part(left: Self.most * share, countedAt: now)
        part.left = min(
            Self.most * share, part.left + Self.seconds(from: part.countedAt, to: now) * Self.perSecond * share)
        part.countedAt = now
        defer { parts[key] = part }
        guard part.left >= 1 + (isTrouble ? 0 : Self.reserve * Self.most * share) else {
            part.leftOut += 1
            return nil
        }
        part.left -= 1
        defer { part.leftOut = 0 }
        return part.leftOut
    }

    /// The part that counts for an owner. Now and then those are dropped that would be whole again.
    private mutating func key(of owner: UInt32, at now: Int64) -> UInt32? {
        if Self.seconds(from: prunedAt, to: now) >= 1 {
            prunedAt = now
            let share = 1 / Double(max(1, parts.count))
            parts = parts.filter { _, part in
                part.left + Self.seconds(from: part.countedAt, to: now) * Self.perSecond * share < Self.most * share
            }
        }
        return parts[owner] != nil || parts.count < Self.mostOwners ? owner : nil
    }

    private static func seconds(from start: Int64, to end: Int64) -> Double {
        Double(max(0, end.subtractingReportingOverflow(start).partialValue)) / 1e9
    }
}
