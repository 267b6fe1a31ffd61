import JobModel

/// The effects of the current round, and its changes to memory that a reset does not rebuild.
struct PendingEffects {
    /// Why nothing more can be stored; nil if there is room.
    struct Shortage: Hashable {
        let reason: String?
    }

    private(set) var effects: [CoreEffect] = []
    /// The indexes of passing job changes in `effects`.
    private var passing: [JobID: Int] = [:]
    /// Jobs that the round ended or deleted, with the subscriptions that named them.
    private(set) var ended: [JobID: Set<SubscriptionID>] = [:]
    private(set) var waits: [Waits.Change] = []
    private(set) var subscribed: [SubscriptionID] = []
    /// Whether a schedule's next job is being prepared, if the round changed that.
    private(set) var preparing: [ScheduleKey: Bool] = [:]
    /// Where the scan of all schedules continues, if the round changed that.
    var rescan: Schedules.Rescan?
    private(set) var cleaned: [WorkID] = []
    private(set) var totals: [(owner: UInt32, count: (inout CoreTotals) -> Void)] = []
    private(set) var shortage: Shortage?

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
    mutating func change(_ change: Waits.Change) { waits.append(change) }
    mutating func subscribe(_ id: SubscriptionID) { subscribed.append(id) }
    mutating func prepare(_ key: ScheduleKey, _ isPreparing: Bool) { preparing[key] = isPreparing }
    mutating func clean(_ id: WorkID) { cleaned.append(id) }
    mutating func count(_ owner: UInt32, _ count: @escaping (inout CoreTotals) -> Void) {
        totals.append((owner, count))
    }
    mutating func learn(_ shortage: Shortage) { self.shortage = shortage }
}
