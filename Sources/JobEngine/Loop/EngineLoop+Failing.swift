import DeferredKit
import DequeModule
import JobModel
import Logging
import JobCore

/// Handles rounds that were not committed.
extension EngineLoop {
    /// Milliseconds between two probes of a failing store, and before an input that could not be stored by itself comes again.
    private static let pause: Int64 = 1000

    /// Called when a round was not committed: its requests fail, and its other inputs come again, one by one, once the store
    /// works.
    func undone(_ scope: Scope, _ inputs: [CoreInput], _ error: StoreError) {
        core.undone()
        switch scope {
        case .probe: return beginFailing(error)
        case .removal: break
        case .all, .one:
            engine.logger.warning("A round was not stored: \(error.message)")
            round(.probe)
        }
        // The status tells a failure of the store before clients learn of it.
        for case .request(let id, _, _) in inputs { fail(id, error) }
        if failure == nil, scope == .one, let input = inputs.first {
            failAlone(input, error)
        } else {
            repeated.prepend(contentsOf: inputs.filter { !$0.isRequest }.map { (.min, $0) })
        }
    }

    /// Asks what became of the round whose fate is unknown: a crash could bring it back, so its requests stay unanswered until
    /// the store tells it.
    func settle() {
        guard let (scope, inputs, error) = doubtful else { return }
        guard let fate = store.settle() else { return beginFailing(error) }
        doubtful = nil
        if case .committed = fate { committed(scope, inputs) } else { undone(scope, inputs, error) }
    }

    private func fail(_ id: RequestID, _ error: StoreError) {
        answer(id, .failed(ProtocolError(.storage, error.message)))
    }

    private func beginFailing(_ error: StoreError) {
        if failure == nil {
            let text = "Nothing can be stored; no new jobs until that works again: \(error.message)"
            engine.logger.log(CoreLog(.error, text, event: .storageFailed))
        }
        failure = (error, now.steady.saturatingAdding(Self.pause))
        publish()
    }

    /// One turn of the loop while the store fails, which refuses requests without a round.
    func serveWithoutStore() {
        if let failure, failure.nextProbe <= now.steady {
            if doubtful == nil { round(.probe) } else { settle() }
        }
        guard let (error, next) = failure else { return }
        take(entries: 1024, bytes: .max)
        var kept: Deque<CoreInput> = []
        let refusal = ProtocolError(.storage, "Nothing can be stored at present: \(error.message)")
        while let input = upcoming.popFirst() {
            switch input {
            case .unsubscribe(let id): core.subscriptions.remove(id)
            case .request(let id, let request, _):
                // A full disk has room for removals, and they make more.
                if request.isRemoval, doubtful == nil { remove(input) } else { answer(id, .failed(refusal)) }
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
        if onStop != nil { return end(isClean: false) }
        engine.inbox.wait(max(1, next.saturatingSubtracting(now.steady)))
    }

    /// Pieces of work that follow a removal while the store fails.
    private static let mostPieces = 100

    /// Removes a job while nothing else can be stored, and its children in pieces.
    private func remove(_ request: CoreInput) {
        upcoming.prepend(request)
        for _ in 0..<Self.mostPieces {
            guard case .committed = round(.removal), core.wantsTick else { return }
            upcoming.prepend(.tick)
        }
    }

    /// Called when an input that was alone in its round could not be stored: its run or request fails, and others come again
    /// later.
    private func failAlone(_ input: CoreInput, _ error: StoreError) {
        engine.logger.error("An input was not stored: \(error.message)")
        let failure = RunEnd(.failure(JobError(.storage, error.message)))
        switch input {
        case .run(_, .ended(let end)) where end.outcome.error?.kind == .storage: postpone(input)
        case .run(let id, .ended): feed(.run(id, .ended(failure)))
        case .run(let id, let event):
            switch event {
            case .checkpoint(_, let saved), .download(_, _, let saved): saved(error)
            default: break
            }
            if case .working(let work)? = runs[id]?.state { work.cancel() }
            end(id, failure)
        case .prepared(let preparation, _):
            if let request = preparation.request { fail(request, error) } else { postpone(input) }
        // The daemon stops even if that cannot be stored.
        case .stop: end(isClean: false)
        default: postpone(input)
        }
    }

    private func postpone(_ input: CoreInput) {
        repeated.append((now.steady.saturatingAdding(Self.pause), input))
    }
}
