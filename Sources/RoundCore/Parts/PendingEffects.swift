import JobModel

/// What the present round is to have done once it is committed, and what of the memory that a reset leaves alone has to be
/// taken back where it is not.
struct PendingEffects {
    /// Why nothing more can be stored; nil where it can.
    struct Shortage: Hashable {
        let reason: String?
    }

    private(set) var effects: [CoreEffect] = []
    /// Jobs whose end the round stored, or that it dropped.
    private(set) var ended: Set<JobID> = []
    private(set) var happened: [Waits.Event] = []
    private(set) var subscribed: [SubscriptionID] = []
    private(set) var asked: [ScheduleKey] = []
    private(set) var cleaned: [WorkID] = []
    private(set) var looked: [(request: RequestID, ended: [JobID])] = []
    private(set) var totals: [(owner: UInt32, count: (inout CoreTotals) -> Void)] = []
    private(set) var shortage: Shortage?

    mutating func emit(_ effect: CoreEffect) { effects.append(effect) }
    mutating func end(_ job: JobID) { ended.insert(job) }
    mutating func happen(_ event: Waits.Event) { happened.append(event) }
    mutating func subscribe(_ id: SubscriptionID) { subscribed.append(id) }
    mutating func ask(_ key: ScheduleKey) { asked.append(key) }
    mutating func clean(_ id: WorkID) { cleaned.append(id) }
    mutating func look(_ request: RequestID, _ ended: [JobID]) { looked.append((request, ended)) }
    mutating func count(_ owner: UInt32, _ count: @escaping (inout CoreTotals) -> Void) {
        totals.append((owner, count))
    }
    mutating func learn(_ shortage: Shortage) { self.shortage = shortage }
}
