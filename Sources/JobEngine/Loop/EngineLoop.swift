import DataSources
import DeferredKit
import DequeModule
import Dispatch
import JobModel
import Logging
import JobCore
import Synchronization

/// The engine's thread: takes what the inbox holds, has the core decide about it in rounds of the store, and carries out what
/// follows. It decides nothing. All of its state belongs to that thread.
final class EngineLoop {
    /// What closes a round. Event loops read the next submissions while it is committed: in the row `submit` with 8 connections,
    /// rounds four times as long give a tenth less.
    private static let most = (inputs: 1024, bytes: 256 << 10, nanoseconds: UInt64(5_000_000))

    let core: Core
    let store: any JobStore
    let engine: Engine
    /// Why a round was not committed: until a probe has been, requests are refused.
    var failure: (error: StoreError, nextProbe: SteadyTime)?
    /// A round whose fate is unknown; the core keeps its effects.
    var doubtful: (scope: Scope, inputs: [CoreInput], error: StoreError)?
    var isOver = false
    /// Inputs that were taken and are not handled yet.
    var upcoming: Deque<CoreInput> = []
    /// Inputs that could not be stored, and when each comes again, in order, in a round of its own.
    var repeated: Deque<(due: SteadyTime, input: CoreInput)> = []

    var runs: [RunID: EngineRun] = [:]
    /// Runs whose source is given up unless it ends by then, in order.
    var patience: Deque<(end: SteadyTime, run: RunID)> = []
    /// What limits the transfers of each queue.
    var queueRates: [String: RateLimiter] = [:]
    /// Called once with the answer to a request.
    var requests: [RequestID: @Sendable (CoreAnswer) -> Void] = [:]
    var subscribers: [SubscriptionID: JobSubscriber] = [:]
    /// The progress that subscriptions with one interval were told last, and the end of the interval, by its milliseconds.
    var intervals: [Int: (end: SteadyTime, told: [JobID: JobProgress])] = [:]
    /// When a round must ask for the news of other nodes; nil if there can be none.
    var nextPoll: SteadyTime?
    /// When other nodes may be told of progress next, and the lists of which they are to be told.
    var nextReport = SteadyTime.min
    var listsToTell: [JobID: ListRow] = [:]
    /// Clients that wait for the output of programs at other nodes.
    var outputWaits: [RunID: [Promise<Void, Never>]] = [:]
    /// Lost runs whose sources have not ended yet.
    var lost: Set<RunID> = []
    /// Whether the next round tells clients the present state of their jobs, as the node has missed changes.
    private var mustTellAgain = false
    /// Whether jobs were submitted since the room on the disk of the state was looked at, or there was too little.
    private var isRoomUncertain = false
    private var nextLook = SteadyTime.min
    var onStop: (@Sendable (_ isClean: Bool) -> Void)?

    init(core: Core, store: any JobStore, engine: Engine) {
        self.core = core
        self.store = store
        self.engine = engine
    }

    var now: CoreMoment { engine.clock.moment() }

    // MARK: - The loop

    /// The first round: makes the core's memory what the rows say.
    func begin(_ start: Core.Start) -> Result<Void, StoreError> {
        // Otherwise, the first submission would be accepted without room.
        lookForRoom()
        let end = store.round { (transaction) throws(StoreError) in
            try core.reset(from: transaction, runs: [], start: start, at: now)
            try core.close(at: now, in: transaction)
        }
        switch end {
        case .committed:
            committed(.all, [])
            store.sharing?.listen { [engine] text in engine.inbox.put(.task { $0.hear(text) }, of: nil) }
            return .success(())
        case .undone(let error), .unknown(let error): return .failure(error)
        }
    }

    func run() {
        while !isOver {
            if failure == nil { serve() } else { serveWithoutStore() }
        }
    }

    private func serve() {
        if let next = repeated.first, next.due <= engine.clock.steady() {
            upcoming.prepend(repeated.removeFirst().input)
            round(.one)
            return
        }
        // Inputs of one user may take several rounds; until then, the inbox keeps the rest, in which other users have turns.
        if upcoming.isEmpty { take(entries: Self.most.inputs, bytes: Self.most.bytes) }
        let now = now
        giveUp(at: now.steady)
        if !isTickPostponed, core.wantsTick(at: now) { feed(.tick) }
        reportProgress(at: now.steady)
        if isRoomUncertain, nextLook <= now.steady { lookForRoom() }
        if !upcoming.isEmpty || nextPoll.map({ $0 <= now.steady }) == true {
            round(.all)
        } else if core.phase == .stopping, onStop != nil {
            // The sources have ended, and what they had to store is stored.
            end(isClean: true)
        } else {
            engine.inbox.wait(milliseconds(until: now))
        }
    }

    func take(entries: Int, bytes: Int) {
        for entry in engine.inbox.take(entries: entries, bytes: bytes) { entry.body(self) }
    }

    /// Adds an input to this round or the next.
    func feed(_ input: CoreInput) { upcoming.append(input) }

    private var isTickPostponed: Bool {
        repeated.contains { if case .tick = $0.input { true } else { false } }
    }

    /// How long nothing is to be done, if nothing comes.
    private func milliseconds(until now: CoreMoment) -> Int64? {
        var times = [
            patience.first?.end, repeated.first?.due, nextProgress, nextPoll, isRoomUncertain ? nextLook : nil,
        ]
        if !isTickPostponed {
            let tick = core.nextTick
            times += [
                tick.steady, tick.wall.map { now.steady.saturatingAdding($0.milliseconds - now.wall.milliseconds) },
            ]
        }
        return times.compactMap(\.self).min().map { max(1, $0.saturatingSubtracting(now.steady)) }
    }

    // MARK: - A round

    /// What a round takes.
    enum Scope {
        /// All inputs that wait or arrive meanwhile.
        case all
        /// The next input alone.
        case one
        /// Nothing: it tests whether the store works, and rebuilds the core's memory from the rows.
        case probe
        /// A probe with the next input, while nothing but removals can be stored, so that no job starts.
        case removal
    }

    @discardableResult
    func round(_ scope: Scope) -> RoundEnd {
        var handled: [CoreInput] = []
        engine.setStoring(true)
        let end = store.round { (transaction) throws(StoreError) in
            engine.setStoring(false)
            defer { engine.setStoring(true) }
            try open(transaction, isReset: scope == .probe || scope == .removal)
            try handleUpcoming(
                atMost: scope == .all ? Self.most.inputs : scope == .probe ? 0 : 1, &handled, transaction)
            if scope == .removal {
                try core.closeWithoutStarts(in: transaction)
            } else {
                try core.close(at: now, in: transaction)
            }
        }
        engine.setStoring(false)
        switch end {
        case .committed: committed(scope, handled)
        case .undone(let error): undone(scope, handled, error)
        case .unknown(let error):
            doubtful = (scope, handled, error)
            settle()
        }
        return end
    }

    /// Begins a round with the news of other nodes, after a reset if the core's memory is made anew from the rows. In another
    /// life, no run is left.
    private func open(_ transaction: any JobTransaction, isReset: Bool) throws(StoreError) {
        if isReset {
            // A round that only reads would not test the disk.
            _ = try transaction.nextNumber()
            if store.life != core.life {
                loseRuns()
                core.life = store.life
                engine.blobs.begin(life: store.life)
                mustTellAgain = true
            }
            try core.reset(from: transaction, runs: runs.values.map(\.live), start: .resumed, at: now)
        }
        guard store.life == core.life else { throw StoreError(.write, "Other nodes took this one to be gone.") }
        let news = try core.open(at: now, in: transaction, isReset: isReset)
        nextPoll = news?.hasMore == true ? .min : nil
        if let news { engine.board.forget(news.jobs, all: news.hasLostRuns) }
        if mustTellAgain { try core.tellAgain(at: now, in: transaction) }
    }

    private func handleUpcoming(
        atMost most: Int, _ handled: inout [CoreInput], _ transaction: any JobTransaction
    ) throws(StoreError) {
        let end = DispatchTime.now().uptimeNanoseconds + Self.most.nanoseconds
        var bytes = 0
        while handled.count < most, !upcoming.isEmpty {
            try transaction.load(upcoming.prefix(most - handled.count).flatMap(Core.keys))
            while let input = upcoming.popFirst() {
                handled.append(input)
                bytes += input.size
                try handle(input, transaction)
                guard handled.count < most, bytes < Self.most.bytes, DispatchTime.now().uptimeNanoseconds < end else {
                    return
                }
            }
            // What came meanwhile is committed with the rest.
            take(entries: most - handled.count, bytes: Self.most.bytes)
        }
    }

    private func handle(_ input: CoreInput, _ transaction: any JobTransaction) throws(StoreError) {
        var now = now
        // Random numbers cost a system call, and only a retry needs one.
        if case .run(_, .ended(let end)) = input, end.outcome.error != nil { now.random = .random(in: 0..<1) }
        try core.handle(input, at: now, in: transaction)
    }

    func committed(_ scope: Scope, _ inputs: [CoreInput]) {
        if failure != nil, scope != .removal {
            engine.logger.log(CoreLog(.notice, "Storing works again.", event: .storageWorks))
            failure = nil
        }
        let effects = core.committed()
        if exchange(&mustTellAgain, with: false) { sweep() }
        if let sharing = store.sharing { tellNodes(sharing) }
        publish(core.status)
        for input in inputs {
            switch input {
            case .run(let id, .ended), .run(let id, .timer), .run(let id, .job): forget(id, isStored: true)
            case .run(_, .checkpoint(_, let saved)), .run(_, .download(_, _, let saved)): saved(nil)
            case .request(_, .submit, _), .prepared: isRoomUncertain = true
            default: break
            }
        }
        for effect in effects { carryOut(effect) }
        for case .stop in inputs { stopped(true) }
    }

    /// Sweeps up what lost runs have left, once rows name it and no source writes it any more.
    func sweep() { if lost.isEmpty, !mustTellAgain { engine.sweep() } }

    /// Looks at the room on the disk of the state, at most once a second: with too little, no jobs are accepted.
    private func lookForRoom() {
        let (blobs, minimum) = (engine.blobs, engine.settings.minimumForJobs)
        let free = blobs.freeBytes ?? .max
        nextLook = now.steady.saturatingAdding(1000)
        isRoomUncertain = free < minimum
        guard isRoomUncertain == (engine.status.core.shortage == nil) else { return }
        let reason = "\"\(blobs.path)\" has \(free) bytes free, less than \(minimum); make room."
        feed(.room(shortage: isRoomUncertain ? reason : nil))
    }

    private func tellNodes(_ sharing: any SharedStore) {
        engine.published.withLock { $0.otherPrograms = sharing.otherPrograms }
        tellOthers(sharing)
        let pause = sharing.announce() ?? sharing.pollPause
        nextPoll = nextPoll ?? now.steady.saturatingAdding(pause)
    }

    /// Publishes whether the store fails, and what is stored; while it fails, the core may know more.
    func publish(_ status: Core.Status? = nil) {
        engine.published.withLock { published in
            if let status { published.core = status }
            published.storageFailure = failure?.error.message
        }
        engine.changes.continuation.yield()
    }

    func stopped(_ isClean: Bool) {
        onStop?(isClean)
        onStop = nil
    }

    func end(isClean: Bool) {
        stopped(isClean)
        isOver = true
    }
}
