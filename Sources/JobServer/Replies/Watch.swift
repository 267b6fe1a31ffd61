import JobCore
import JobEngine
import JobModel
import JobProtocol
import NIOCore
import Synchronization

/// One watch of one connection: its unfinished jobs, and the progress and output that wait.
///
/// Updates are buffered until the answer that names the watch is on its way. Only the latest progress of each job waits; a
/// later state of the job replaces it. Its lock is taken before that of its outbox.
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
        state = Mutex(State(watch: number, charge: charge))
    }

    var isGone: Bool { outbox.limit == nil || state.withLock(\.hasEnded) }

    /// Whether every watched job is finished.
    var isSettled: Bool { state.withLock(\.isSettled) }

    // MARK: - Updates

    /// Passes on buffered and later updates; `jobs` are all or some jobs that were unfinished at the start, `versions` those in
    /// its answer.
    func open(unfinished jobs: Set<JobID>, versions: [JobID: Int64] = [:], isAll: Bool = true) {
        change { state, _ in
            for job in jobs { state.unfinished[job] = 0 }
            state.versions = versions
            state.knowsAll = isAll
            state.bufferedBytes = 0
            for update in exchange(&state.buffered, with: nil) ?? [] { pass(on: update, &state) }
        }
    }

    func receive(_ update: JobUpdate) {
        change { state, limit in
            if state.buffered != nil { state.buffer(update, within: limit) } else { pass(on: update, &state) }
        }
    }

    /// Stops passing updates on and drops those that wait; states sent before still reach the client.
    func end() {
        state.withLock { state in
            state = State(watch: number)
            outbox.dequeue(self)
        }
    }

    private func change(_ body: (inout State, _ limit: Int) -> Void) {
        guard let limit = outbox.limit else { return }
        let (isSettled, fits) = state.withLock { state in
            if state.hasEnded { return (false, true) }
            let hadProgress = state.hasProgress
            body(&state, limit)
            if !hadProgress, state.hasProgress { outbox.enqueue(self) }
            return (state.isSettled, state.fits(within: limit))
        }
        if fits { outbox.flush() } else { outbox.overflow() }
        if isSettled { settled(self) }
    }

    /// Passes on what the answer does not show.
    private func pass(on update: JobUpdate, _ state: inout State) {
        switch update {
        case .event(let event):
            if let version = state.versions[event.job] {
                guard event.version > version else {
                    // Progress before the answer can have added a job whose end the answer shows.
                    if event.isLast { state.forget(event.job) }
                    return
                }
                state.versions[event.job] = nil
            }
            write(event, &state)
        case .progress(let batch): state.add(batch, to: \.progress)
        case .output(let batch): state.add(batch, to: \.output)
        case .gone(let job): state.forget(job)
        }
    }

    // MARK: - Lines

    /// Writes the line of a state, which replaces the progress of its job.
    private func write(_ event: JobEvent, _ state: inout State) {
        // States may go on without further progress, so only jobs of the batch are remembered.
        state.unfinished[event.job, default: 0] += 1
        let seq = state.unfinished[event.job]
        if event.isLast { state.forget(event.job) } else { state.progress.remove(event.job) }
        let body = event.body
        outbox.add { buffer in
            buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: stateHead.room + body.count) { target in
                guard let start = target.baseAddress else { return 0 }
                return body.withUnsafeBytes { stateHead.write(job: event.job, seq: seq, body: $0, to: start) } - start
            }
        }
    }

    /// Writes lines of progress and output that wait, about `limit` bytes at most.
    func writeProgress(atMost limit: Int) {
        state.withLock { state in
            outbox.add { buffer in
                if state.progress.write(to: &buffer, limit: limit, &state.unfinished) {
                    _ = state.output.write(to: &buffer, limit: limit, &state.unfinished)
                }
            }
            if !state.hasProgress { outbox.dequeue(self) }
        }
    }
}

extension Watch {
    fileprivate struct State {
        /// Updates that came before the answer; nil once the watch is open.
        var buffered: [JobUpdate]? = []
        var bufferedBytes = 0
        /// Jobs whose end is not yet reported, and the number of the last notification of each.
        var unfinished: [JobID: Int] = [:]
        /// Whether `unfinished` has every unfinished job covered, so that only state changes can add one.
        var knowsAll = true
        /// The job versions in its answer; events of the same or an earlier version are dropped.
        var versions: [JobID: Int64] = [:]
        var progress: WaitingBatch
        var output: WaitingBatch
        /// Its memory; nil once it has ended.
        let charge: BudgetCharge?
        /// The part of its memory that does not change.
        let ownBytes: Int

        init(watch: Int, charge: BudgetCharge? = nil) {
            (progress, output) = (WaitingBatch(.progress, watch: watch), WaitingBatch(.output, watch: watch))
            self.charge = charge
            ownBytes = charge?.bytes ?? 0
        }

        var hasEnded: Bool { charge == nil }

        /// Whether the watch has ended, or is open and every watched job is finished.
        var isSettled: Bool { hasEnded || buffered == nil && unfinished.isEmpty }

        var hasProgress: Bool { !progress.isEmpty || !output.isEmpty }

        /// Buffers an update. State changes must not be dropped, so the connection ends if they exceed the outbox's limit;
        /// excess progress is dropped. In a batch, the answer waits for all other calls.
        mutating func buffer(_ update: JobUpdate, within limit: Int) {
            switch update {
            // Others may share the text, or be gone before this one: it counts for each.
            case .event(let event): bufferedBytes += Self.bytesPerJob + event.body.count
            case .progress(let batch), .output(let batch):
                let size = batch.rows.count * Self.bytesPerJob
                guard size <= limit - bufferedBytes else { return }
                bufferedBytes += size
            case .gone: bufferedBytes += Self.bytesPerJob
            }
            buffered?.append(update)
        }

        /// The approximate bytes of an unfinished job, and of a buffered update besides its text.
        private static let bytesPerJob = 64

        /// Counts the memory of buffered events and jobs; returns false if it is too much.
        func fits(within limit: Int) -> Bool {
            guard bufferedBytes <= limit, let charge else { return false }
            return charge.resize(to: ownBytes + unfinished.count * Self.bytesPerJob + bufferedBytes)
        }

        mutating func add(_ batch: ProgressBatch, to waiting: WritableKeyPath<State, WaitingBatch>) {
            // A batch has very many rows, and usually all jobs are known.
            if !knowsAll { for row in batch.rows where unfinished[row.job] == nil { unfinished[row.job] = 0 } }
            self[keyPath: waiting].add(batch)
        }

        /// Forgets a job that has ended.
        mutating func forget(_ job: JobID) {
            progress.remove(job)
            output.remove(job)
            unfinished[job] = nil
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
