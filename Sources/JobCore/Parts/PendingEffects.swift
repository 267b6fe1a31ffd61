import JobModel

/// The effects of the current round, and its changes to memory that a reset does not rebuild.
struct PendingEffects {
    private(set) var effects: [CoreEffect] = []
    /// The indexes of passing job changes in `effects`.
    private var passing: [JobID: Int] = [:]
    /// Jobs that the round ended or deleted, with the subscriptions that named them.
    private(set) var ended: [JobID: Set<SubscriptionID>] = [:]
    var waits: [Waits.Change] = []
    var subscribed: [SubscriptionID] = []
    /// Where the scan of all schedules continues, if the round changed that.
    var rescan: Schedules.Rescan?
    var cleaned: [WorkID] = []
    private(set) var totals: [(owner: UInt32, count: (inout CoreTotals) -> Void)] = []
    /// Why nothing more can be stored, or nil if there is room, if the round learned that.
    var shortage: String??

    mutating func emit(_ effect: CoreEffect) { effects.append(effect) }

    /// Reports a job change. A `passing` change is dropped if the same round makes another.
    mutating func tell(_ subscribers: [SubscriptionID], _ change: JobChange, isPassing: Bool) {
        if let index = passing.removeValue(forKey: change.row.id) { effects[index] = .notify([], change) }
        if isPassing { passing[change.row.id] = effects.count }
        emit(.notify(subscribers, change))
    }

    mutating func end(_ job: JobID, toldTo subscriptions: Set<SubscriptionID>) {
        ended[job, default: []].formUnion(subscriptions)
        waits.append(.happened(.end(job)))
    }
    mutating func count(_ owner: UInt32, _ count: @escaping (inout CoreTotals) -> Void) {
        totals.append((owner, count))
    }
}
