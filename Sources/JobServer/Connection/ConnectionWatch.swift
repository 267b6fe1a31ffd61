import JobCore
import JobEngine
import JobModel
import Synchronization

/// One watch of one connection; it passes events on once the answer that names it is on its way.
final class ConnectionWatch: JobSubscriber {
    fileprivate struct State {
        var isEnded = false
        /// Updates that came before the answer.
        var buffered: [JobUpdate]? = []
        var bufferedBytes = 0
        /// Jobs whose end is not yet reported.
        var unfinished: Set<JobID> = []
        /// The job versions in its answer; events of the same or an earlier version are dropped.
        var versions: [JobID: Int64] = [:]
        /// Whether `unfinished` has every unfinished job covered, so that only state changes can add one.
        var knowsAll = true
        /// Its memory, and the part that does not change.
        var memory: BudgetCharge?
        let ownBytes: Int
    }

    let number: Int
    let subscription: SubscriptionID
    var name: String { "w\(number)" }
    private let outbox: Outbox
    private let state: Mutex<State>
    private let settled: @Sendable () -> Void

    /// `settled` is called whenever no watched job is unfinished.
    /// State changes buffered before the answer must not be dropped, so the connection ends if they exceed the outbox's
    /// limit; excess progress is dropped. In a batch, the answer waits for all other calls.
    init(
        number: Int, subscription: SubscriptionID = 0, outbox: Outbox, charge: BudgetCharge? = nil,
        settled: @escaping @Sendable () -> Void
    ) {
        self.number = number
        self.subscription = subscription
        self.outbox = outbox
        state = Mutex(State(memory: charge, ownBytes: charge?.bytes ?? 0))
        self.settled = settled
    }

    var isGone: Bool { outbox.isClosed || state.withLock(\.isEnded) }

    /// Whether every watched job is finished.
    var isSettled: Bool { state.withLock { $0.buffered == nil && $0.unfinished.isEmpty } }

    func receive(_ update: JobUpdate) {
        // The outbox closes before the engine learns that the client is gone, and the engine may have much to report.
        guard !outbox.isClosed else { return }
        change { state, most in
            if state.buffered == nil { return tell(update, &state) }
            state.buffer(update, within: most)
            return false
        }
    }

    /// Passes on buffered and later events; `jobs` are all or some jobs that were unfinished at the start.
    /// `versions` are those in its answer.
    func open(unfinished jobs: Set<JobID>, versions: [JobID: Int64] = [:], isAll: Bool = true) {
        change { state, _ in
            state.unfinished.formUnion(jobs)
            state.versions = versions
            state.knowsAll = isAll
            for update in state.buffered ?? [] { _ = tell(update, &state) }
            (state.buffered, state.bufferedBytes) = (nil, 0)
            return state.unfinished.isEmpty
        }
    }

    /// Stops passing events on and releases its memory.
    func end() {
        state.withLock { state in
            state.isEnded = true
            state.memory = nil
        }
    }

    /// Changes the state; `body` returns whether the change has settled the watch.
    private func change(_ body: (inout State, _ most: Int) -> Bool) {
        let most = outbox.most
        let (isSettled, fits) = state.withLock { state in (body(&state, most), state.fits(within: most)) }
        if !fits { outbox.overflow() }
        if isSettled { settled() }
    }

    /// Passes on what the answer does not show; returns whether all watched jobs are finished.
    private func tell(_ update: JobUpdate, _ state: inout State) -> Bool {
        guard state.isNews(update) else { return false }
        switch update {
        case .event(let event): outbox.send(event, watch: number)
        case .progress(let batch): outbox.send(batch, watch: number)
        }
        return state.unfinished.isEmpty
    }
}

extension ConnectionWatch.State {
    /// The approximate bytes of an unfinished job with the number of its last notification, and of a buffered
    /// update besides its text.
    private static let bytesPerJob = 64

    /// Counts the memory of buffered events and jobs; returns false if it is too much.
    fileprivate func fits(within most: Int) -> Bool {
        guard bufferedBytes <= most else { return false }
        return memory?.resize(to: ownBytes + unfinished.count * Self.bytesPerJob + bufferedBytes) ?? true
    }

    /// Buffers an update until the answer is on its way, without progress beyond the bound.
    fileprivate mutating func buffer(_ update: JobUpdate, within most: Int) {
        switch update {
        // Others may share the text, or be gone before this one: it counts for each.
        case .event(let event): bufferedBytes += Self.bytesPerJob + OutboxWatch.size(of: event)
        case .progress(let batch):
            let size = batch.rows.count * Self.bytesPerJob
            guard size <= most - bufferedBytes else { return }
            bufferedBytes += size
        }
        buffered?.append(update)
    }

    /// Updates the unfinished jobs; returns false if the answer shows the update already.
    fileprivate mutating func isNews(_ update: JobUpdate) -> Bool {
        if isEnded { return false }
        switch update {
        case .event(let event):
            if let version = versions[event.job] {
                guard event.version > version else { return false }
                versions[event.job] = nil
            }
            if event.isLast { unfinished.remove(event.job) } else { unfinished.insert(event.job) }
        case .progress(let batch):
            // A batch has very many rows, and usually all jobs are known.
            if !knowsAll { for row in batch.rows { unfinished.insert(row.job) } }
        }
        return true
    }
}
