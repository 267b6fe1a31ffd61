import JobModel

/// What the present round is to have done once it is committed, and what of the memory that a reset leaves alone has to be
/// taken back where it is not.
struct PendingEffects {
    private(set) var effects: [CoreEffect] = []
    /// Jobs whose end the round stored, or that it dropped.
    private(set) var ended: Set<JobID> = []
    private(set) var happened: [Waits.Event] = []
    private(set) var subscribed: [SubscriptionID] = []
    private(set) var asked: [ScheduleKey] = []
    private(set) var cleaned: [WorkID] = []

    mutating func emit(_ effect: CoreEffect) { effects.append(effect) }
    mutating func end(_ job: JobID) { ended.insert(job) }
    mutating func happen(_ event: Waits.Event) { happened.append(event) }
    mutating func subscribe(_ id: SubscriptionID) { subscribed.append(id) }
    mutating func ask(_ key: ScheduleKey) { asked.append(key) }
    mutating func clean(_ id: WorkID) { cleaned.append(id) }
}
