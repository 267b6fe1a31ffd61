import JobCore
import JobEngine
import JobModel
import Synchronization

/// One watch of one connection: it passes events on, once the answer that names it is on its way.
final class ConnectionWatch: JobSubscriber {
    fileprivate enum Notification {
        case event(JobEvent)
        case batch(ProgressBatch)
    }

    fileprivate enum Buffering {
        case open
        case buffered
        case full
    }

    fileprivate struct State {
        var isEnded = false
        /// What came before the answer.
        var buffered: [Notification]? = []
        var bufferedBytes = 0
        /// The jobs whose end it has yet to report.
        var unfinished: Set<JobID> = []
        /// The versions of jobs that its answer tells; an event of the same version or an earlier one is not passed on.
        var versions: [JobID: Int64] = [:]
        /// Whether `unfinished` has every unfinished job that it covers, so that only changes of state can add one.
        var knowsAll = true
        /// What it takes in memory, and of that what is buffered and what its unfinished jobs take.
        var memory: BudgetCharge?
        var charged = 0
    }

    let number: Int
    let subscription: SubscriptionID
    var name: String { "w\(number)" }
    private let outbox: Outbox
    private let state: Mutex<State>
    private let settled: @Sendable () -> Void

    /// `settled` is called whenever nothing it watches is unfinished any more. Changes of state that come before the answer and
    /// take more than may wait in the outbox end the connection, as none may be left out; progress beyond that is left out.
    /// The answer can be long in coming: in a batch it waits for that of each other call.
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

    func receive(_ event: JobEvent) { receive(.event(event)) }

    func receive(_ batch: ProgressBatch) { receive(.batch(batch)) }

    private func receive(_ notification: Notification) {
        // A connection that read nothing is gone here before the engine knows of it, which may have very much to tell.
        guard !outbox.isClosed else { return }
        switch state.withLock({ $0.buffer(notification, within: outbox.most) }) {
        case .open: if tell(notification) { settled() }
        case .buffered: break
        case .full: if case .event = notification { outbox.overflow() }
        }
        if !state.withLock({ $0.recount() }) { outbox.overflow() }
    }

    /// Passes on what the answer does not tell; true where nothing it watches is unfinished any more.
    private func tell(_ notification: Notification) -> Bool {
        let (isNews, isSettled) = state.withLock { state in
            state.isNews(notification) ? (true, state.count(notification)) : (false, false)
        }
        guard isNews else { return false }
        switch notification {
        case .event(let event): outbox.send(event, watch: number)
        case .batch(let batch): outbox.send(batch, watch: number)
        }
        return isSettled
    }

    /// Passes nothing on any more and gives back what it takes in memory.
    func end() {
        state.withLock { state in
            state.isEnded = true
            state.memory = nil
        }
    }

    /// Passes on what was buffered and all that comes; `jobs` are those that were unfinished when the watch began, or some of
    /// them, and `versions` those of the jobs that its answer tells of.
    func open(unfinished jobs: Set<JobID>, versions: [JobID: Int64] = [:], isAll: Bool = true) {
        state.withLock { state in
            state.unfinished.formUnion(jobs)
            state.versions = versions
            state.knowsAll = isAll
        }
        while let buffered = drain() {
            for notification in buffered { _ = tell(notification) }
        }
        if !state.withLock({ $0.recount() }) { outbox.overflow() }
        if isSettled { settled() }
    }

    /// What is buffered. Nil where nothing is; from then on events are not buffered any more.
    private func drain() -> [Notification]? {
        state.withLock { state in
            state.bufferedBytes = 0
            defer { state.buffered = state.buffered?.isEmpty == false ? [] : nil }
            return state.buffered?.isEmpty == false ? state.buffered : nil
        }
    }

    /// Whether every job it watches is over.
    var isSettled: Bool { state.withLock { $0.buffered == nil && $0.unfinished.isEmpty } }
}

extension ConnectionWatch.State {
    /// Bytes that an unfinished job takes, about, with the number of its last notification, and a buffered notification beside
    /// its text.
    private static let bytesPerJob = 64
    /// Bytes that are counted at a time, at least.
    private static let countedAtOnce = 64 * bytesPerJob

    /// Counts what is buffered and its jobs; false where that is too much.
    fileprivate mutating func recount() -> Bool {
        let more = unfinished.count * Self.bytesPerJob + bufferedBytes - charged
        guard let memory, abs(more) >= Self.countedAtOnce else { return true }
        charged += more
        return memory.grow(by: more)
    }

    /// Buffers what came before the answer, within the bound, unless that is on its way.
    fileprivate mutating func buffer(
        _ notification: ConnectionWatch.Notification, within bytes: Int
    ) -> ConnectionWatch.Buffering {
        guard buffered != nil else { return .open }
        guard bufferedBytes <= bytes else { return .full }
        buffered?.append(notification)
        switch notification {
        // Others may have the same text, or be gone before this one: it counts for each.
        case .event(let event): bufferedBytes += Self.bytesPerJob + OutboxWatch.size(of: event)
        case .batch(let batch): bufferedBytes += batch.rows.count * Self.bytesPerJob
        }
        return .buffered
    }

    /// Whether the answer does not tell it already.
    fileprivate mutating func isNews(_ notification: ConnectionWatch.Notification) -> Bool {
        if isEnded { return false }
        guard case .event(let event) = notification, let version = versions[event.job] else { return true }
        guard event.version > version else { return false }
        versions[event.job] = nil
        return true
    }

    /// Keeps count of what is unfinished; true where nothing is any more.
    fileprivate mutating func count(_ notification: ConnectionWatch.Notification) -> Bool {
        switch notification {
        case .event(let event):
            if event.isLast { unfinished.remove(event.job) } else { unfinished.insert(event.job) }
        case .batch(let batch):
            // There are very many rows, and mostly all jobs are known.
            if !knowsAll { for row in batch.rows { unfinished.insert(row.job) } }
        }
        return unfinished.isEmpty
    }
}
