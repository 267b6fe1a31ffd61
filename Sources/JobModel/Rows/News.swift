/// What the other nodes of a database have changed since this one's last committed round.
///
/// Rounds of all nodes follow each other, so with its news a node knows as much as if it had made the changes itself.
package struct News: Sendable {
    /// Jobs that were changed or removed, by id.
    package var jobs: [JobID] = []
    /// Work that is done.
    package var work: [Int64] = []
    /// The present counts among those that changed; without jobs where none are left.
    package var counts: [CountKey: CountValue] = [:]
    /// Whether settings of queues changed.
    package var hasQueues = false
    package var hasSchedules = false
    /// Whether runs of lives that are over may be left (``JobTransaction/lostRuns(limit:)``).
    package var hasLostRuns = false
    /// Whether more is to be told in a further round.
    package var hasMore = false

    package init() {}
}
