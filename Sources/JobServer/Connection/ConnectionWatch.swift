import JobCore
import JobEngine
import JobModel

/// One watch of one connection; its outbox passes events on once the answer that names it is on its way.
final class ConnectionWatch: JobSubscriber {
    let number: Int
    let subscription: SubscriptionID
    var name: String { "w\(number)" }
    private let outbox: Outbox
    private let settled: @Sendable () -> Void

    /// `settled` is called whenever no watched job is unfinished.
    init(
        number: Int, subscription: SubscriptionID = 0, outbox: Outbox, charge: BudgetCharge? = nil,
        settled: @escaping @Sendable () -> Void
    ) {
        self.number = number
        self.subscription = subscription
        self.outbox = outbox
        self.settled = settled
        outbox.begin(OutboxWatch(number, charge: charge), watch: number)
    }

    var isGone: Bool { !outbox.has(watch: number) }

    /// Whether every watched job is finished.
    var isSettled: Bool { outbox.isSettled(watch: number) }

    func receive(_ update: JobUpdate) {
        // Written before the outbox is locked, so that its event loop does not wait for that.
        if case .event(let event) = update { _ = event.body }
        if outbox.send(update, watch: number) { settled() }
    }

    /// Passes on buffered and later events; `jobs` are all or some jobs that were unfinished at the start.
    /// `versions` are those in its answer.
    func open(unfinished jobs: Set<JobID>, versions: [JobID: Int64] = [:], isAll: Bool = true) {
        if outbox.open(watch: number, unfinished: jobs, versions: versions, isAll: isAll) { settled() }
    }

    /// Stops passing events on and releases its memory.
    func end() { outbox.end(watch: number) }
}
