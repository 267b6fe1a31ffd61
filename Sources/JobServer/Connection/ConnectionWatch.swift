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
        /// Its memory, and the part counted for buffered events and unfinished jobs.
        var memory: BudgetCharge?
        var charged = 0
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
        state = Mutex(State(memory: charge))
        self.settled = settled
    }

    var isGone: Bool { outbox.isClosed || state.withLock(\.isEnded) }

    func receive(_ update: JobUpdate) {
        // The outbox closes before the engine learns that the client is gone, and the engine may have much to report.
        guard !outbox.isClosed else { return }
        let isBuffered = state.withLock { $0.buffer(update, within: outbox.most) }
        if !isBuffered, tell(update) { settled() }
        recount()
    }

    /// Passes on what the answer does not show; returns whether all watched jobs are finished.
    private func tell(_ update: JobUpdate) -> Bool {
        let (isNews, isSettled) = state.withLock { state in
            state.isNews(update) ? (true, state.count(update)) : (false, false)
        }
        guard isNews else { return false }
        switch update {
        case .event(let event): outbox.send(event, watch: number)
        case .progress(let batch): outbox.send(batch, watch: number)
        }
        return isSettled
    }

    private func recount() {
        if !state.withLock({ $0.recount(within: outbox.most) }) { outbox.overflow() }
    }

    /// Stops passing events on and releases its memory.
    func end() {
        state.withLock { state in
            state.isEnded = true
            state.memory = nil
        }
    }

    /// Passes on buffered and later events; `jobs` are all or some jobs that were unfinished at the start.
    /// `versions` are those in its answer.
    func open(unfinished jobs: Set<JobID>, versions: [JobID: Int64] = [:], isAll: Bool = true) {
        state.withLock { state in
            state.unfinished.formUnion(jobs)
            state.versions = versions
            state.knowsAll = isAll
        }
        while let buffered = drain() {
            for update in buffered { _ = tell(update) }
        }
        recount()
        if isSettled { settled() }
    }

    /// Returns the buffered events; once it returns nil, events are no longer buffered.
    private func drain() -> [JobUpdate]? {
        state.withLock { state in
            state.bufferedBytes = 0
            defer { state.buffered = state.buffered?.isEmpty == false ? [] : nil }
            return state.buffered?.isEmpty == false ? state.buffered : nil
        }
    }

    /// Whether every watched job is finished.
    var isSettled: Bool { state.withLock { $0.buffered == nil && $0.unfinished.isEmpty } }
}

extension ConnectionWatch.State {
    /// The approximate bytes of an unfinished job with the number of its last notification, and of a buffered
    /// update besides its text.
    private static let bytesPerJob = 64
    /// The minimum number of bytes counted at a time.
    private static let countedAtOnce = 64 * bytesPerJob

    /// Updates the charge for buffered events and jobs; returns false if that is too much.
    fileprivate mutating func recount(within bytes: Int) -> Bool {
        guard bufferedBytes <= bytes else { return false }
        let more = unfinished.count * Self.bytesPerJob + bufferedBytes - charged
        guard let memory, abs(more) >= Self.countedAtOnce else { return true }
        charged += more
        return memory.grow(by: more)
    }

    /// Buffers an update until the answer is on its way, without progress beyond the bound; returns false if it is.
    fileprivate mutating func buffer(_ update: JobUpdate, within bytes: Int) -> Bool {
        guard buffered != nil else { return false }
        switch update {
        // Others may share the text, or be gone before this one: it counts for each.
        case .event(let event): bufferedBytes += Self.bytesPerJob + OutboxWatch.size(of: event)
        case .progress(let batch):
            let size = batch.rows.count * Self.bytesPerJob
            guard size <= bytes - bufferedBytes else { return true }
            bufferedBytes += size
        }
        buffered?.append(update)
        return true
    }

    /// Returns whether the answer does not show it already.
    fileprivate mutating func isNews(_ update: JobUpdate) -> Bool {
        if isEnded { return false }
        guard case .event(let event) = update, let version = versions[event.job] else { return true }
        guard event.version > version else { return false }
        versions[event.job] = nil
        return true
    }

    /// Updates the unfinished jobs; returns whether none is left.
    fileprivate mutating func count(_ update: JobUpdate) -> Bool {
        switch update {
        case .event(let event):
            if event.isLast { unfinished.remove(event.job) } else { unfinished.insert(event.job) }
        case .progress(let batch):
            // A batch has very many rows, and usually all jobs are known.
            if !knowsAll { for row in batch.rows { unfinished.insert(row.job) } }
        }
        return unfinished.isEmpty
    }
}
