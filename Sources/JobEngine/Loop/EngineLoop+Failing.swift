import DataSources
import DeferredKit
import DequeModule
import JobModel
import Logging
import JobCore
import Synchronization

/// Handles rounds that were not committed.
extension EngineLoop {
    /// Milliseconds between two probes of a failing store, and before an input that could not be stored by itself comes again.
    private static let pause: Int64 = 1000

    /// Called when a round was not committed: its requests fail, and its other inputs come again, one by one, once the store
    /// works.
    func undone(_ inputs: [CoreInput], isAlone: Bool, _ error: StoreError) {
        engine.logger.warning("A round was not stored: \(error.message)")
        core.undone()
        let end = rebuild()
        // The status tells a failure of the store before clients learn of it.
        for case .request(let id, _, _) in inputs { fail(id, error) }
        if case .committed = end, isAlone, let input = inputs.first {
            failAlone(input, error)
        } else {
            repeated.prepend(contentsOf: inputs.filter { !$0.isRequest }.map { (.min, $0) })
        }
    }

    /// Called when the fate of a round is unknown: a crash could bring it back, so its requests stay unanswered until the store
    /// tells it.
    func settle(_ doubt: (inputs: [CoreInput], isAlone: Bool, error: StoreError)) {
        doubtful = doubt
        guard let fate = store.settle() else { return beginFailing(doubt.error) }
        doubtful = nil
        if case .committed = fate {
            endFailing()
            committed(doubt.inputs)
        } else {
            undone(doubt.inputs, isAlone: doubt.isAlone, doubt.error)
        }
    }

    private func fail(_ id: RequestID, _ error: StoreError) {
        answer(id, .failed(ProtocolError(.storage, error.message)))
    }

    /// Tests whether the store works, and rebuilds the core's memory from the rows, in a round that starts jobs and ends the
    /// failure unless it has an input.
    @discardableResult
    private func rebuild(with input: CoreInput? = nil) -> RoundEnd {
        let now = now
        let end = store.round { (transaction) throws(StoreError) in
            // A round that only reads would not test the disk.
            _ = try transaction.nextNumber()
            try reopen(transaction)
            if let input {
                try core.handle(input, at: now, in: transaction)
                try core.closeWithoutStarts(in: transaction)
            } else {
                try core.close(at: now, in: transaction)
            }
        }
        let inputs = input.map { [$0] } ?? []
        switch end {
        case .committed:
            if input == nil { endFailing() }
            committed(inputs)
        case .unknown(let error):
            doubtful = (inputs, false, error)
            beginFailing(error)
        case .undone(let error):
            core.undone()
            if input == nil { beginFailing(error) }
        }
        return end
    }

    private func endFailing() {
        if failure != nil { engine.logger.log(CoreLog(.notice, "Storing works again.", event: .storageWorks)) }
        failure = nil
    }

    private func beginFailing(_ error: StoreError) {
        if failure == nil {
            let text = "Nothing can be stored; no new jobs until that works again: \(error.message)"
            engine.logger.log(CoreLog(.error, text, event: .storageFailed))
        }
        failure = (error, now.steady.saturatingAdding(Self.pause))
        // The core may know more than is stored, so nothing else is published.
        engine.published.withLock { $0.storageFailure = error.message }
        engine.changes.continuation.yield()
    }

    /// One turn of the loop while the store fails, which refuses requests without a round.
    func fail(_ error: StoreError, until next: SteadyTime) {
        if next <= now.steady {
            if let doubtful { settle(doubtful) } else { rebuild() }
            if failure == nil { return }
        }
        take(entries: 1024, bytes: .max)
        var kept: Deque<CoreInput> = []
        let refusal = ProtocolError(.storage, "Nothing can be stored at present: \(error.message)")
        while let input = upcoming.popFirst() {
            switch input {
            case .unsubscribe(let id): core.unsubscribe(id)
            case .request(let id, let request, _):
                // A full disk has room for removals, and they make more.
                if !request.isRemoval || doubtful != nil || !remove(input) { answer(id, .failed(refusal)) }
            default: kept.append(input)
            }
        }
        upcoming = kept
        giveUp(at: now.steady)
        // Other nodes are about to begin these runs again.
        if let sharing = store.sharing, sharing.isLeaseEnding, !runs.isEmpty {
            loseRuns()
            sharing.giveUpLife()
        }
        if onStop != nil { return giveUpStop() }
        engine.inbox.wait(max(1, next.saturatingSubtracting(now.steady)))
    }

    /// Pieces of work that follow a removal while the store fails.
    private static let mostPieces = 100

    /// Removes a job while nothing else can be stored; returns false if the request must be refused.
    private func remove(_ request: CoreInput) -> Bool {
        switch rebuild(with: request) {
        case .committed: break
        case .undone: return false
        case .unknown: return true
        }
        // The children of the job are removed in pieces.
        for _ in 0..<Self.mostPieces where core.wantsTick {
            guard case .committed = rebuild(with: .tick) else { break }
        }
        return true
    }

    /// Called when an input that was alone in its round could not be stored: its run or request fails, and others come again
    /// later.
    private func failAlone(_ input: CoreInput, _ error: StoreError) {
        engine.logger.error("An input was not stored: \(error.message)")
        switch input {
        case .run(let id, let event):
            switch event {
            case .checkpoint(_, let saved), .download(_, _, let saved): saved(error)
            default: break
            }
            if !fail(id, JobError(.storage, error.message)), case .ended = event { postpone(input) }
        case .prepared(let preparation, _):
            if let request = preparation.request { fail(request, error) } else { postpone(input) }
        // The daemon stops even if that cannot be stored.
        case .stop: giveUpStop()
        default: postpone(input)
        }
    }

    private func postpone(_ input: CoreInput) {
        repeated.append((now.steady.saturatingAdding(Self.pause), input))
    }

    private func giveUpStop() {
        stopped(false)
        isOver = true
    }
}
