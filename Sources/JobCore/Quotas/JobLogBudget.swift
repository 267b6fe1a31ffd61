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

        mutating func admit(isTrouble: Bool, share: Double, at now: Int64) -> Int? {
            left = min(
                JobLogBudget.most * share,
                left + JobLogBudget.seconds(from: countedAt, to: now) * JobLogBudget.perSecond * share)
            countedAt = now
            guard left >= 1 + (isTrouble ? 0 : JobLogBudget.reserve * JobLogBudget.most * share) else {
                leftOut += 1
                return nil
            }
            left -= 1
            defer { leftOut = 0 }
            return leftOut
        }
    }

    /// Nil stands for the owners without a part of their own.
    private var parts: [UInt32?: Part] = [:]
    private var prunedAt: Int64 = 0

    /// Owners that are counted now.
    var ownerCount: Int { parts.count }

    /// Whether an entry on a job of `owner` is written at this monotonic time: then how many of that owner's were left out
    /// since the last one.
    mutating func admit(isTrouble: Bool, of owner: UInt32, at now: Int64) -> Int? {
        prune(at: now)
        // One look-up, as this is asked for every job.
        let index = index(of: owner, at: now)
        let share = 1 / Double(parts.count)
        return parts.values[index].admit(isTrouble: isTrouble, share: share, at: now)
    }

    /// Now and then those parts are dropped that would be whole again.
    private mutating func prune(at now: Int64) {
        guard Self.seconds(from: prunedAt, to: now) >= 1 else { return }
        prunedAt = now
        let share = 1 / Double(max(1, parts.count))
        parts = parts.filter { _, part in
            part.left + Self.seconds(from: part.countedAt, to: now) * Self.perSecond * share < Self.most * share
        }
    }

    /// Where the part is that counts for an owner, who gets one where there is none.
    private mutating func index(of owner: UInt32, at now: Int64) -> Dictionary<UInt32?, Part>.Index {
        if let index = parts.index(forKey: owner) { return index }
        let key = parts.count < Self.mostOwners ? owner : nil
        if parts[key] == nil {
            parts[key] = Part(left: Self.most / Double(parts.count + 1), countedAt: now)
        }
        return parts.index(forKey: key) ?? parts.startIndex
    }

    private static func seconds(from start: Int64, to end: Int64) -> Double {
        Double(max(0, end.subtractingReportingOverflow(start).partialValue)) / 1e9
    }
}
