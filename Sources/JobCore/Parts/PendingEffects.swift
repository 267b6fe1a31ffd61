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

    mutating func emit(_ effect: CoreEffect) { effects.append(effect) }

    /// Returns the place of an effect that is still to be made.
    mutating func hold() -> Int {
        effects.append(.unlink([]))
        return effects.count - 1
    }

    mutating func emit(_ effect: CoreEffect, at place: Int) { effects[place] = effect }

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
}
