import JobCore
import JobEngine
import JobModel
import JobProtocol
import Synchronization

/// One watch of one connection: its unfinished jobs, and the progress and output that wait.
///
/// Until the answer that names the watch is on its way, states are buffered and progress waits. Only the latest progress of each
/// job waits; a later state of the job replaces it. Its lock is taken before that of its outbox.
final class Watch: Sendable {
    let number: Int
    let subscription: SubscriptionID
    var name: String { "w\(number)" }
    private let outbox: Outbox
    private let stateHead: JobNotification
    private let settled: @Sendable (Watch) -> Void
    private let state: Mutex<State>

    /// `charge` counts its memory. `settled` is called whenever no watched job is unfinished.
    init(
        number: Int, subscription: SubscriptionID = 0, outbox: Outbox, charge: BudgetCharge,
        settled: @escaping @Sendable (Watch) -> Void
    ) {
        self.number = number
        self.subscription = subscription
        self.outbox = outbox
        self.settled = settled
        stateHead = JobNotification(.state, watch: "w\(number)")
        state = Mutex(State(progress: WaitingBatch(watch: "w\(number)"), charge: charge, ownBytes: charge.bytes))
    }

    /// Whether every watched job is finished.
    var isSettled: Bool { state.withLock(\.isSettled) }

    // MARK: - Updates

    /// Passes on buffered and later updates; `standings` are of the jobs in its answer.
    func open(_ standings: [JobID: JobStanding]) {
        change { state in
            state.answered = standings
            for (job, standing) in standings where !standing.state.isTerminal { state.unfinished[job] = 0 }
            state.bufferedBytes = 0
            for update in exchange(&state.buffered, with: nil) ?? [] { pass(on: update, &state) }
        }
    }

    func receive(_ update: JobUpdate) {
        change { state in
            switch update {
            case .progress(let batch): return state.progress.add(batch)
            case .event(let event): state.progress.remove(event.job, hasEnded: event.state.isTerminal)
            case .gone(let job): state.progress.remove(job, hasEnded: true)
            case .missed: return
            }
            if state.buffered == nil { pass(on: update, &state) } else { state.buffer(update) }
        }
    }

    /// Stops passing updates on and drops those that wait; states sent before still reach the client.
    func end() {
        state.withLock { state in
            state = State(progress: WaitingBatch(watch: name), charge: nil, ownBytes: 0)
            outbox.dequeue(self)
        }
    }

    private func change(_ body: (inout State) -> Void) {
        guard let limit = outbox.limit else { return }
        let result = state.withLock { state -> (isSettled: Bool, fits: Bool)? in
            if state.hasEnded { return nil }
            let hadProgress = state.hasProgress
            body(&state)
            if !hadProgress, state.hasProgress { outbox.enqueue(self) }
            return (state.isSettled, state.fits(within: limit))
        }
        guard let (isSettled, fits) = result else { return }
        if fits { outbox.flush() } else { outbox.overflow() }
        if isSettled { settled(self) }
    }

    /// Passes on what the answer does not show.
    private func pass(on update: JobUpdate, _ state: inout State) {
        switch update {
        case .event(let event):
            if event.version > state.answered[event.job]?.version ?? .min {
                state.unfinished[event.job, default: 0] += 1
                // The body is written before the outbox is locked, as the event loop would wait for that.
                let (seq, body) = (state.unfinished[event.job], event.body)
                outbox.add { $0.writeLine(stateHead, job: event.job, seq: seq, body: body[...]) }
            }
            if event.state.isTerminal { state.forget(event.job) }
        case .gone(let job): state.forget(job)
        case .progress, .missed: break
        }
    }

    /// Writes lines of progress and output that wait, about `limit` bytes at most.
    func writeProgress(atMost limit: Int) {
        state.withLock { state in
            outbox.add { state.progress.write(to: &$0, limit: limit, &state.unfinished) }
            if state.progress.isEmpty { outbox.dequeue(self) }
        }
    }
}

extension Watch {
    fileprivate struct State {
        /// Updates other than progress that came before the answer; nil once the watch is open.
        var buffered: [JobUpdate]? = []
        var bufferedBytes = 0
        /// Jobs whose end is not yet reported, and the number of the last notification of each. Of jobs that the answer had no
        /// room for, those that the client was told of.
        var unfinished: [JobID: Int] = [:]
        /// The jobs in its answer that have not ended since; events of the same or an earlier version are dropped.
        var answered: [JobID: JobStanding] = [:]
        var progress: WaitingBatch
        /// Its memory; nil once it has ended.
        let charge: BudgetCharge?
        /// The part of its memory that does not change.
        let ownBytes: Int

        var hasEnded: Bool { charge == nil }

        /// Whether the watch has ended, or is open and every watched job is finished.
        var isSettled: Bool { hasEnded || buffered == nil && unfinished.isEmpty && progress.isEmpty }

        /// Whether it has progress that may be sent.
        var hasProgress: Bool { buffered == nil && !progress.isEmpty }

        /// The approximate bytes of an unfinished job, and of a buffered update besides its text.
        private static let bytesPerJob = 64

        /// Buffers a change of state, which must not be dropped. In a batch, the answer waits for all other calls.
        mutating func buffer(_ update: JobUpdate) {
            bufferedBytes += Self.bytesPerJob
            // Others may share the text, or be gone before this one: it counts for each.
            if case .event(let event) = update { bufferedBytes += event.body.count }
            buffered?.append(update)
        }

        /// Counts the memory of buffered events and jobs; returns false if it is too much and the connection has to end.
        func fits(within limit: Int) -> Bool {
            guard bufferedBytes <= limit, let charge else { return false }
            return charge.resize(to: ownBytes + unfinished.count * Self.bytesPerJob + bufferedBytes)
        }

        /// Forgets a job that has ended.
        mutating func forget(_ job: JobID) {
            unfinished[job] = nil
            answered[job] = nil
        }
    }
}

extension JobEvent {
    /// The part of the line that all watches share.
    fileprivate var body: [UInt8] {
        text { snapshot in
            JobNotification.state(
                state, snapshot: snapshot.text(.brief, within: Answer.mostBytes - JobNotification.most))
        }
    }
}
