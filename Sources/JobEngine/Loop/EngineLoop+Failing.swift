import DataSources
import DeferredKit
import DequeModule
import JobModel
import Logging
import JobCore
import Synchronization

/// Handles rounds that were not committed.
extension EngineLoop {
    /// Milliseconds between two probes of a failing store.
    private static let probePause: Int64 = 1000
    /// Milliseconds before an input that could not be stored by itself is tried again.
    private static let postponement: Int64 = 10_000

    /// Called when a round was not committed: its requests fail, and its other inputs come again, one by one, once the store
    /// works. Until its fate is settled, a crash could bring it back, so its requests are answered after the next commit.
    func undone(_ handled: [CoreInput], isAlone: Bool, _ error: StoreError, isSettled: Bool) {
        engine.logger.warning("A round was not stored: \(error.message)")
        core.undone()
        for case .request(let id, _, _) in handled {
            if isSettled { fail(id, error) } else { unsettled.append(id) }
        }
        if probe(error), isAlone, let input = handled.first {
            failAlone(input, error)
        } else {
            replay.prepend(contentsOf: handled.filter { !$0.isRequest })
        }
    }

    /// Keeps the inputs of a round whose fate the store will tell later. Its requests stay unanswered until then.
    func doubt(_ handled: [CoreInput], _ error: StoreError) {
        doubtful = handled
        beginFailing(error)
    }

    /// Asks for the fate of such a round; returns whether it was told.
    private func settle(_ handled: [CoreInput], _ error: StoreError) -> Bool {
        switch store.settle() {
        case nil, .unknown:
            beginFailing(error)
            return false
        case .committed:
            doubtful = nil
            goOn()
            committed(handled)
        case .undone(let error):
            doubtful = nil
            undone(handled, isAlone: false, error, isSettled: true)
        }
        return true
    }

    private func fail(_ id: RequestID, _ error: StoreError) {
        answer(id, .failed(CoreError(.storage, error.message)))
    }

    /// Tests whether the store works, by a round that rebuilds the core's memory from the rows.
    @discardableResult
    private func probe(_ error: StoreError) -> Bool {
        let now = now
        let end = store.round { (transaction) throws(StoreError) in
            // A round that only reads would not test the disk.
            _ = try transaction.nextNumber()
            try reopen(transaction)
            try core.close(at: now, in: transaction)
        }
        switch end {
        case .committed:
            goOn()
            let effects = core.committed()
            wasCommitted()
            publish()
            for id in unsettled { fail(id, error) }
            unsettled = []
            for effect in effects { carryOut(effect) }
            return true
        case .unknown(let new) where store.tellsFates:
            doubt([], new)
            return false
        case .undone(let new), .unknown(let new):
            core.undone()
            beginFailing(new)
            return false
        }
    }

    private var isFailing: Bool { if case .failing = phase { true } else { false } }

    private func goOn() {
        if isFailing { log(.notice, "Storing works again.", .storageWorks) }
        phase = core.phase == .serving ? .serving : .stopping
    }

    private func beginFailing(_ error: StoreError) {
        if !isFailing {
            log(.error, "Nothing can be stored; no new jobs until that works again: \(error.message)", .storageFailed)
        }
        phase = .failing(error, nextProbe: now.steady.saturatingAdding(Self.probePause))
        // The core may know more than is stored, so nothing else is published.
        engine.published.withLock { $0.storageFailure = error.message }
        engine.changes.continuation.yield()
    }

    private func log(_ level: CoreLog.Level, _ message: String, _ event: CatalogEvent) {
        engine.logger.log(CoreLog(level, message, event: event))
    }

    /// One turn of the loop while the store fails, which refuses requests without a round.
    func fail(_ error: StoreError, until next: SteadyTime) {
        if next <= now.steady {
            if let doubtful {
                if settle(doubtful, error) { return }
            } else if probe(error) {
                return
            }
        }
        var kept: Deque<CoreInput> = []
        let refusal = CoreError(.storage, "Nothing can be stored at present: \(error.message)")
        while let input = upcoming.popFirst() {
            if case .unsubscribe(let id) = input {
                core.unsubscribe(id)
                continue
            }
            guard case .request(let id, let request, _) = input else {
                kept.append(input)
                continue
            }
            // A full disk has room for removals, and they make more.
            if request.isRemoval, doubtful == nil, remove(input, id) { continue }
            answer(id, .failed(refusal))
        }
        upcoming = kept
        giveUp(at: now.steady)
        // Other nodes are about to begin these runs again.
        if let sharing = store.sharing, sharing.isLeaseEnding, !runs.isEmpty {
            loseRuns()
            sharing.giveUpLife()
        }
        let hasTaken = take(entries: 1024, bytes: .max)
        if onStop != nil {
            giveUpStop()
        } else if !hasTaken {
            engine.inbox.wait(max(1, next.saturatingSubtracting(now.steady)))
        }
    }

    /// Pieces of work that follow a removal while the store fails.
    private static let mostPieces = 100

    /// Removes a job while nothing else can be stored; returns false if the request must be refused.
    private func remove(_ request: CoreInput, _ id: RequestID) -> Bool {
        switch carryOutWhileFailing(request) {
        case .committed: break
        case .undone: return false
        case .unknown:
            if doubtful == nil { unsettled.append(id) }
            return true
        }
        // The children of the job are removed in pieces.
        for _ in 0..<Self.mostPieces where core.wantsTick {
            guard case .committed = carryOutWhileFailing(.tick) else { break }
        }
        return true
    }

    private func carryOutWhileFailing(_ input: CoreInput) -> RoundEnd {
        let now = now
        let end = store.round { (transaction) throws(StoreError) in
            try reopen(transaction)
            try core.handle(input, at: now, in: transaction)
            try core.closeWithoutStarts(in: transaction)
        }
        switch end {
        case .committed:
            let effects = core.committed()
            wasCommitted()
            for effect in effects { carryOut(effect) }
        case .unknown where store.tellsFates: doubtful = [input]
        case .undone, .unknown: core.undone()
        }
        return end
    }

    /// Called when an input that was alone in its round could not be stored: its run or request fails, and others are tried again
    /// later.
    private func failAlone(_ input: CoreInput, _ error: StoreError) {
        engine.logger.error("An input was not stored: \(error.message)")
        switch input {
        case .run(_, .checkpoint(_, let id)), .run(_, .download(_, _, let id)):
            saves.removeValue(forKey: id)?(.failure(error))
        default: break
        }
        switch input {
        case .run(let id, let event):
            if !fail(id, JobError(.storage, error.message)), case .ended = event { postpone(input) }
        case .prepared(let preparation, _) where preparation.request != nil:
            if let request = preparation.request { fail(request, error) }
        case .tick: suspectTick = now.steady.saturatingAdding(Self.probePause)
        // The daemon stops even if that cannot be stored.
        case .stop: giveUpStop()
        default: postpone(input)
        }
    }

    private func postpone(_ input: CoreInput) {
        postponed.append((now.steady.saturatingAdding(Self.postponement), input))
    }

    private func giveUpStop() {
        stopped(false)
        phase = .over
    }
}
