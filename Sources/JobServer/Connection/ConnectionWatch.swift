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
        /// Bytes that are counted in memory.
        var charged = 0
        /// Whether `unfinished` has every unfinished job that it covers, so that only changes of state can add one.
        var knowsAll = true
    }

    let number: Int
    let subscription: SubscriptionID
    var name: String { "w\(number)" }
    private let outbox: Outbox
    /// What its jobs take in memory.
    private let memory: Mutex<BudgetCharge?>
    private let state = Mutex(State())
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
        memory = Mutex(charge)
        self.settled = settled
    }

    var isGone: Bool { outbox.isClosed || state.withLock(\.isEnded) }

    func receive(_ event: JobEvent) { receive(.event(event)) }

    func receive(_ batch: ProgressBatch) { receive(.batch(batch)) }

    /// Bytes that a job takes, about: in the set of those that are not finished, and with the number of its last notification.
    fileprivate static let bytesPerJob = 64
    /// Bytes that a buffered notification takes beside its text, or that one job's progress takes.
    fileprivate static let bytesPerBuffered = 64
    /// Bytes that are counted at a time, at least.
    private static let countedAtOnce = 64 * bytesPerJob

    private func receive(_ notification: Notification) {
        // A connection that read nothing is gone here before the engine knows of it, which may have very much to tell.
        guard !outbox.isClosed else { return }
        let (buffering, isNews, isSettled) = state.withLock { state in
            let buffering = state.buffer(notification, within: outbox.most)
            guard buffering == .open, !state.isEnded, state.isNews(notification) else {
                return (buffering, false, false)
            }
            return (buffering, true, state.count(notification))
        }
        switch buffering {
        case .open:
            guard isNews else { return }
            send(notification)
            if isSettled { settled() }
            charge()
        case .buffered: charge()
        case .full: if case .event = notification { outbox.overflow() }
        }
    }

    /// Counts what is buffered, and what the jobs take that are not finished.
    private func charge() {
        guard let memory = memory.withLock(\.self) else { return }
        let more = state.withLock { state -> Int in
            let more = state.bytes - state.charged
            guard more >= Self.countedAtOnce else { return 0 }
            state.charged += more
            return more
        }
        if more > 0, !memory.grow(by: more) { outbox.overflow() }
    }

    /// Gives back what was counted for what is buffered no more: the outbox has counted it since.
    private func release() {
        let less = state.withLock { state -> Int in
            let less = max(0, state.charged - state.bytes)
            state.charged -= less
            return less
        }
        memory.withLock(\.self)?.shrink(by: less)
    }

    /// Passes nothing on any more and gives back what it takes in memory, as its client has ended it.
    func end() {
        state.withLock { $0.isEnded = true }
        memory.withLock { $0 = nil }
    }

    private func send(_ notification: Notification) {
        switch notification {
        case .event(let event): outbox.send(event, watch: number)
        case .batch(let batch): outbox.send(batch, watch: number)
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
        charge()
        while let buffered = drain() {
            for notification in buffered {
                let isNews = state.withLock { state in
                    let isNews = state.isNews(notification)
                    if isNews { _ = state.count(notification) }
                    return isNews
                }
                if isNews { send(notification) }
            }
            release()
        }
        if isSettled { settled() }
    }

    /// What is buffered. Nil where nothing is; from then on events are not buffered any more.
    private func drain() -> [Notification]? {
        state.withLock { state in
            state.bufferedBytes = 0
            guard let buffered = state.buffered, !buffered.isEmpty else {
                state.buffered = nil
                return nil
            }
            state.buffered = []
            return buffered
        }
    }

    /// Whether every job it watches is over.
    var isSettled: Bool { state.withLock { $0.buffered == nil && $0.unfinished.isEmpty } }
}

extension ConnectionWatch.State {
    fileprivate var bytes: Int {
        unfinished.count * ConnectionWatch.bytesPerJob + bufferedBytes
    }

    /// Buffers what came before the answer, within the bound, unless that is on its way.
    fileprivate mutating func buffer(
        _ notification: ConnectionWatch.Notification, within bytes: Int
    ) -> ConnectionWatch.Buffering {
        guard buffered != nil else { return .open }
        guard bufferedBytes <= bytes else { return .full }
        buffered?.append(notification)
        switch notification {
        case .event(let event):
            // Others may have the same text, or be gone before this one: it counts for each.
            bufferedBytes += ConnectionWatch.bytesPerBuffered + OutboxWatch.size(of: event)
        case .batch(let batch):
            bufferedBytes += batch.rows.count * ConnectionWatch.bytesPerBuffered
        }
        return .buffered
    }

    /// Whether the answer does not tell it already.
    fileprivate mutating func isNews(_ notification: ConnectionWatch.Notification) -> Bool {
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
