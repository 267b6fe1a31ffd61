/// The sum of the progress of a list's members.
///
/// The total is known once every member has reported one. A resolved member counts as complete: with its total, or else
/// with its completed units, 0 if it never reported. The sum never falls.
struct GatheredProgress {
    private struct Member {
        var completed: Int64 = 0
        var total: Int64?
        var isComplete = false
    }

    private var members: [Member]
    private var completed: Int64 = 0
    private var total: Int64 = 0
    private var withoutTotal: Int
    private var last: ProgressUpdate?
    /// Whether any member ever reported; until then the list has no progress.
    private var hasBegun = false

    init(count: Int) {
        members = Array(repeating: Member(), count: count)
        withoutTotal = count
    }

    /// Adds a member's progress and returns the list's, if that changed.
    mutating func update(_ index: Int, _ update: ProgressUpdate) -> ProgressUpdate? {
        guard !members[index].isComplete else { return nil }
        hasBegun = true
        set(index, completed: update.completed, total: update.total ?? members[index].total)
        return advance()
    }

    /// Counts a member as complete and returns the list's progress, if that changed.
    mutating func complete(_ index: Int, _ final: ProgressUpdate?) -> ProgressUpdate? {
        guard !members[index].isComplete else { return nil }
        let completed = final?.completed ?? members[index].completed
        let whole = max(final?.total ?? members[index].total ?? completed, completed)
        set(index, completed: whole, total: whole)
        members[index].isComplete = true
        if final != nil { hasBegun = true }
        return hasBegun ? advance() : nil
    }

    private mutating func set(_ index: Int, completed: Int64, total: Int64?) {
        let former = members[index]
        self.completed = self.completed &- former.completed &+ completed
        self.total = self.total &- (former.total ?? 0) &+ (total ?? 0)
        if former.total == nil, total != nil { withoutTotal -= 1 }
        members[index].completed = completed
        members[index].total = total
    }

    private mutating func advance() -> ProgressUpdate? {
        let sum = ProgressUpdate(
            completed: max(completed, last?.completed ?? completed),
            total: withoutTotal == 0 ? total : nil
        )
        if let last, !sum.rises(from: last) { return nil }
        last = sum
        return sum
    }
}
