/// Shares out how many finished jobs stay among their owners.
package enum RetentionShares {
    /// The most that each owner keeps, where the `counts` of all are more than `total` together; nil where they are not.
    ///
    /// Who has most loses first, down to those who have fewer: nobody's jobs go because of another's, as long as they are
    /// no more than an equal part.
    package static func most(of counts: [Int], keeping total: Int) -> Int? {
        var rest = max(0, total)
        for (index, count) in counts.sorted().enumerated() {
            let share = rest / (counts.count - index)
            if count > share { return share }
            rest -= count
        }
        return nil
    }
}
