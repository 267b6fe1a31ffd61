import JobModel

/// What the present round is to have done once it is committed, and what of the memory that a reset leaves alone has to be
/// taken back where it is not.
struct PendingEffects {
    /// Why nothing more can be stored; nil where it can.
    struct Shortage: Hashable {
        let reason: String?
    }

    private(set) var effects: [CoreEffect] = []
    /// Where the passing changes of jobs are among them.
    private var passing: [JobID: Int] = [:]
    /// Jobs whose end the round stored, or that it dropped, with the subscriptions that named them then.
    private(set) var ended: [JobID: Set<SubscriptionID>] = [:]
    private(set) var waits: [Waits.Change] = []
    private(set) var subscribed: [SubscriptionID] = []
    /// Whether the next job of a schedule is being made, where the round changed that.
    private(set) var preparing: [ScheduleKey: Bool] = [:]
    /// Where the look at all schedules goes on, where the round changed that.
    var rescan: Schedules.Rescan?
    private(set) var cleaned: [WorkID] = []
    private(set) var totals: [(owner: UInt32, count: (inout CoreTotals) -> Void)] = []
    private(set) var shortage: Shortage?

    mutating func emit(_ effect: CoreEffect) { effects.append(effect) }

    /// Tells of a change of a job. One that is `passing` is not told where the same round brings the next.
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
