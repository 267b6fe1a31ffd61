import DataSources
import DeferredKit
import DequeModule
import JobModel
import Logging
import JobCore
import Synchronization

/// Inputs of a round that was not committed: they come again in one round, and where that is not committed either, one by one.
struct Replay {
    private var inputs: Deque<CoreInput> = []
    private var isSingle = false
    private var present: [CoreInput] = []

    /// The inputs of the next round; nil where none come again.
    mutating func next() -> [CoreInput]? {
        if inputs.isEmpty { return nil }
        present = isSingle ? [inputs.removeFirst()] : Array(inputs)
        if !isSingle { inputs = [] }
        return present
    }

    mutating func committed() {
        present = []
        if inputs.isEmpty { isSingle = false }
    }

    /// A round of these was not committed. Gives the one that was alone in it.
    mutating func undone(_ handled: [CoreInput]) -> CoreInput? {
        defer { present = [] }
        if isSingle, present.count == 1 { return present[0] }
        isSingle = !present.isEmpty
        inputs = present.isEmpty ? Deque(handled.filter { !$0.isRequest }) : Deque(present)
        return nil
    }

    /// Something else was wrong when this one failed: it comes again.
    mutating func putBack(_ input: CoreInput) {
        inputs.prepend(input)
        isSingle = true
    }
}

/// Rounds that were not committed.
extension EngineLoop {
    /// Milliseconds between two probes of a store that fails.
    private static let probePause: Int64 = 1000
    /// Milliseconds before an input is tried again that could not be stored by itself.
    private static let postponement: Int64 = 10_000

    /// A round was not committed: its requests fail, and all else of it comes again once the store works. Where its fate is not
    /// settled a crash could still bring it back, and its requests are answered after the next commit.
    func undone(_ handled: [CoreInput], _ error: StoreError, isSettled: Bool) {
        services.logger.warning("A round was not stored: \(error.message)")
        core.undone()
        let suspect = replay.undone(handled)
        for case .request(let id, _, _) in handled {
            if isSettled { fail(id, error) } else { unsettled.append(id) }
        }
        guard probe(error) else {
            if let suspect { replay.putBack(suspect) }
            return
        }
        if let suspect { failAlone(suspect, error) }
    }

    private func fail(_ id: RequestID, _ error: StoreError) {
        answer(id, .failed(CoreError(.storage, error.message)))
    }

    /// Tries whether the store works again, by a round that makes the core's memory what the rows say. Gives whether it does.
    @discardableResult
    private func probe(_ error: StoreError) -> Bool {
        let now = now
        let wasFailing = if case .failing = phase { true } else { false }
        let end = store.round { (transaction) throws(StoreError) in
            // A round that only reads would tell nothing of the disk.
            _ = try transaction.nextNumber()
            try core.reset(from: transaction, runs: runs.values.map(\.live), start: .resumed, at: now)
            try core.close(at: now, in: transaction)
        }
        switch end {
        case .committed:
            if wasFailing { log(.notice, "Storing works again.", .storageWorks) }
            phase = core.phase == .serving ? .serving : .stopping
            let effects = core.committed()
            publish()
            for id in unsettled { fail(id, error) }
            unsettled = []
            for effect in effects { carryOut(effect) }
            return true
        case .undone(let new), .unknown(let new):
            core.undone()
            if !wasFailing {
                log(.error, "Nothing can be stored; no new jobs until that works again: \(new.message)", .storageFailed)
            }
            phase = .failing(new, nextProbe: now.steady.saturatingAdding(Self.probePause))
            // The core knows more than is stored.
            services.status.withLock { $0.storageFailure = new.message }
            services.changes.continuation.yield()
            return false
        }
    }

    private func log(_ level: CoreLog.Level, _ message: String, _ event: CatalogEvent) {
        services.logger.log(CoreLog(level, message, event: event))
    }

    /// One turn of the loop while the store fails: requests are refused without a round.
    func fail(_ error: StoreError, until next: SteadyTime) {
        if next <= now.steady, probe(error) { return }
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
            // On a full disk there is room for removals, and they make more.
            if case .remove = request, remove(input, id) { continue }
            answer(id, .failed(refusal))
        }
        upcoming = kept
        giveUp(at: now.steady)
        let hasTaken = take(entries: 1024, bytes: .max)
        if onStop != nil {
            giveUpStop()
        } else if !hasTaken {
            services.inbox.wait(max(1, next.saturatingSubtracting(now.steady)))
        }
    }

    /// Pieces of work that follow a removal at once while the store fails.
    private static let mostPieces = 100

    /// Removes a job while nothing else can be stored; gives whether the request is done with.
    private func remove(_ request: CoreInput, _ id: RequestID) -> Bool {
        switch carryOutWhileFailing(request) {
        case .committed: break
        case .undone: return false
        case .unknown:
            unsettled.append(id)
            return true
        }
        // What is below the job goes in pieces.
        for _ in 0..<Self.mostPieces where core.wantsTick {
            guard case .committed = carryOutWhileFailing(.tick) else { break }
        }
        return true
    }

    private func carryOutWhileFailing(_ input: CoreInput) -> RoundEnd {
        let now = now
        let end = store.round { (transaction) throws(StoreError) in
            try core.reset(from: transaction, runs: runs.values.map(\.live), start: .resumed, at: now)
            try core.handle(input, at: now, in: transaction)
            try core.closeWithoutStarts(in: transaction)
        }
        if case .committed = end {
            for effect in core.committed() { carryOut(effect) }
        } else {
            core.undone()
        }
        return end
    }

    /// An input could not be stored, and nothing else was in its round: a run or request fails by that, and all else is tried again
    /// later.
    private func failAlone(_ input: CoreInput, _ error: StoreError) {
        services.logger.error("An input was not stored: \(error.message)")
        switch input {
        case .run(_, .checkpoint(_, let id)), .run(_, .download(_, _, let id)):
            saves.removeValue(forKey: id)?(.failure(error))
        default: break
        }
        switch input {
        case .request: break
        case .run(let id, _) where runs[id]?.isSuspect == false:
            runs[id]?.isSuspect = true
            runs[id]?.work?.cancel()
            runs[id]?.isTimer = false
            end(id, RunEnd(.failure(JobError(.storage, error.message))))
        case .run(_, let event) where !event.isEnded: break
        case .prepared(let preparation, _) where preparation.request != nil:
            if let request = preparation.request { fail(request, error) }
        case .tick: suspectTick = now.steady.saturatingAdding(Self.probePause)
        // One that cannot be stored is no reason to stay.
        case .stop: giveUpStop()
        default: postponed.append((now.steady.saturatingAdding(Self.postponement), input))
        }
    }

    private func giveUpStop() {
        stopped(false)
        phase = .over
    }
}

extension RunEvent {
    fileprivate var isEnded: Bool { if case .ended = self { true } else { false } }
}
