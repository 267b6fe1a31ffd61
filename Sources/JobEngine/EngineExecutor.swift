package import DeferredKit
import DequeModule
package import Dispatch
import Glibc
package import JobCore
import JobModel
import Synchronization

/// Runs the engine's work, one piece after another. It is both the executor of the engine's actor and that of callbacks
/// of Deferreds, so a callback runs on the engine without a task.
///
/// States: running on one thread; idle; and between both, where work waits that somebody was asked to run. A thread that
/// comes then with work of its own runs that too, so that nothing waits for one that is slow to come.
///
/// The engine's own work goes in the order of the calls, and so does that of each user; users take turns with each other and
/// with the engine's own work, so that whoever asks for much stands in nobody's way but their own.
///
/// Pieces that take long have turns of their own, one at a time, and are run on the queue only, so that no event loop is held
/// up by them. While other users are there, a user whose piece took long, here or in the store, waits three times as long for
/// the next one: so the others find the engine free most of the time, and their median does not change.
package final class EngineExecutor: SerialExecutor, CallbackExecutor {
    fileprivate enum Work {
        case job(UnownedJob)
        case body(@Sendable () -> Void)
    }

    /// Who was asked to run what waits; nobody while it runs.
    fileprivate enum Runner {
        case nobody
        case caller
        case queue
    }

    /// Where what waits is run by a thread that has other things to do as well.
    fileprivate enum Beginning {
        case here([Work])
        /// It is too much for that thread; the queue is to be asked.
        case queue
        case none
    }

    fileprivate struct State {
        /// The engine's own.
        var own: Deque<Work> = []
        /// What users asked for, and how many pieces that is.
        var requests: [UInt32: Deque<Work>] = [:]
        var requestCount = 0
        /// Those who have some in `requests`, in the order of their turns.
        var users: Deque<UInt32> = []
        var isRunning = false
        var asked = Runner.nobody
        var long = LongWork()
        var connected = ConnectedUsers.none
    }

    /// Pieces that take long, by user.
    fileprivate struct LongWork {
        var pieces: [UInt32: Deque<@Sendable () -> Void>] = [:]
        /// Those who have some and do not pause, in the order of their turns.
        var users: Deque<UInt32> = []
        /// From when until when users pause, by the monotonic clock.
        var pauses: [UInt32: (start: Int64, end: Int64)] = [:]
        /// Rounds of other work since the last piece.
        var rounds = 0
    }

    /// The most pieces that a thread runs beside its own before the queue goes on.
    package static let mostFurther = 16

    /// Pieces of the engine's own work in each round: answers of the store and of sources, of which requests in progress make
    /// some each.
    fileprivate static let ownInRound = 8

    /// Rounds of other work between two long pieces, where there are as many.
    fileprivate static let roundsBetween = 4
    /// How many times as long as a piece took its user has no further one, and how long at most: 1 s.
    fileprivate static let pauseFactor: Int64 = 3
    fileprivate static let longestPause: Int64 = 1_000_000_000
    /// Nobody pauses for what took less: 0.5 ms.
    fileprivate static let shortestLong: Int64 = 500_000

    /// Runs the work that no caller runs.
    package let queue: DispatchQueue
    private let state = Mutex(State())
    /// The thread that runs work; 0 while none does.
    private let runner = Atomic<UInt>(0)

    private let now: @Sendable () -> Int64
    private let after: @Sendable (Int64, @escaping @Sendable () -> Void) -> Void

    /// `now` is the monotonic clock, in nanoseconds; `after` runs something after so many, and not on the queue, which can be
    /// busy for long.
    package init(
        now: @escaping @Sendable () -> Int64 = { EngineClock.system.now().monotonic },
        after: @escaping @Sendable (Int64, @escaping @Sendable () -> Void) -> Void = { pause, body in
            DispatchQueue.global().asyncAfter(deadline: .now() + .nanoseconds(Int(pause)), execute: body)
        }
    ) {
        queue = DispatchQueue(label: "deferd.engine")
        self.now = now
        self.after = after
    }

    /// Has users pause after long pieces from now on while others are among `users`, whether they are there or not: what they
    /// left behind keeps others waiting as well.
    package func connected(_ users: ConnectedUsers) {
        state.withLock { $0.connected = users }
    }

    package func enqueue(_ job: consuming ExecutorJob) {
        submit(.job(UnownedJob(job)), of: nil)
    }

    package func submit(_ job: @escaping @Sendable () -> Void) {
        submit(.body(job), of: nil)
    }

    /// The same for what `user` asks for; nil stands for the engine itself.
    package func submit(of user: UInt32?, _ job: @escaping @Sendable () -> Void) {
        submit(.body(job), of: user)
    }

    private func submit(_ work: Work, of user: UInt32?) {
        let mustAsk = state.withLock { state in
            state.append(work, of: user)
            return state.mustAsk(.queue)
        }
        if mustAsk { queue.async { self.drain() } }
    }

    /// Has `executor` run `job`, unless something runs or comes before that; then it is run there.
    package func submit(on executor: any CallbackExecutor, _ job: @escaping @Sendable () -> Void) {
        let mustAsk = state.withLock { state in
            state.append(.body(job), of: nil)
            return state.mustAsk(.caller)
        }
        if mustAsk { executor.submit { self.runWaiting() } }
    }

    /// Runs `body` on the calling thread where nothing runs, with what waits, and about `further` pieces that came
    /// meanwhile; elsewhere and later where something does. This spares a change of threads there and another back.
    package func runNow(_ body: @escaping @Sendable () -> Void, of user: UInt32? = nil, further: Int) {
        let beginning = state.withLock { state in
            state.append(.body(body), of: user)
            return state.beginHere()
        }
        run(beginning, further: further)
    }

    /// Runs what waits on the calling thread, unless that is done elsewhere.
    private func runWaiting() {
        run(state.withLock { $0.beginHere() }, further: Self.mostFurther)
    }

    private func run(_ beginning: Beginning, further: Int) {
        let work: [Work]
        switch beginning {
        case .none: return
        case .queue: return queue.async { self.drain() }
        case .here(let first): work = first
        }
        run(work)
        var left = further
        while left > 0, let work = dequeueRoundOrEnd() {
            run(work)
            left -= work.count
        }
        // Long pieces came meanwhile, or more than this thread may run.
        if state.withLock({ $0.endOrAskQueue(hasEnded: left > 0) }) { queue.async { self.drain() } }
    }

    private func drain() {
        guard state.withLock({ $0.begin(mayBeLong: true) }) else { return }
        while true {
            if let (user, long) = state.withLock({ $0.dequeueLong() }) {
                let began = now()
                run([.body(long)])
                took(now() - began, of: user)
            } else if let work = dequeueRoundOrEnd(mayBeLong: true) {
                run(work)
            } else {
                return
            }
        }
    }

    /// What runs next; nil where nothing waits, and then nothing runs any more. Long pieces are left to the queue.
    private func dequeueRoundOrEnd(mayBeLong: Bool = false) -> [Work]? {
        state.withLock { state in
            if state.isEmpty, !mayBeLong || state.long.users.isEmpty {
                state.isRunning = false
                return nil
            }
            return state.dequeueRound()
        }
    }

    // MARK: - Long pieces

    /// Runs what takes long when it is the user's turn, in the order of the calls of each user.
    package func submitLong(of user: UInt32, _ body: @escaping @Sendable () -> Void) {
        let mustAsk = state.withLock { state in
            state.long.append(body, of: user)
            return state.long.users.isEmpty ? false : state.mustAsk(.queue)
        }
        if mustAsk { queue.async { self.drain() } }
    }

    /// Runs what takes long and waits now, on the engine, which is about to stop.
    package func runAllLong() {
        checkIsolated()
        for piece in state.withLock({ $0.long.popAll() }) { piece() }
    }

    /// Has `user` pause for what took so many nanoseconds, here or in the store.
    package func took(_ time: Int64, of user: UInt32) {
        guard time >= Self.shortestLong else { return }
        let pause = min(time.saturatingMultiplied(by: Self.pauseFactor), Self.longestPause)
        let start = now()
        let isNew = state.withLock { state in
            guard state.connected.areOthers(than: user) else { return false }
            return state.long.pause(user, from: start, until: start.saturatingAdding(pause))
        }
        if isNew { after(pause) { self.pauseEnds(of: user) } }
    }

    private func pauseEnds(of user: UInt32) {
        let (left, mustAsk) = state.withLock { state in
            let left = state.long.endPause(of: user, at: now())
            return (left, left == nil && !state.long.users.isEmpty && state.mustAsk(.queue))
        }
        // It has become longer meanwhile.
        if let left { return after(left) { self.pauseEnds(of: user) } }
        if mustAsk { queue.async { self.drain() } }
    }

    private func run(_ work: [Work]) {
        runner.store(Self.thisThread, ordering: .relaxed)
        for piece in work {
            switch piece {
            case .job(let job): job.runSynchronously(on: asUnownedSerialExecutor())
            case .body(let body): body()
            }
        }
        runner.store(0, ordering: .relaxed)
    }

    private static var thisThread: UInt { UInt(pthread_self()) }

    package func checkIsolated() {
        // Only the running thread itself ever stores its own name here, so no other can mistake itself for it.
        precondition(runner.load(ordering: .relaxed) == Self.thisThread, "This is not on the engine.")
    }
}

extension EngineExecutor.State {
    private var count: Int { own.count + requestCount }
    fileprivate var isEmpty: Bool { count == 0 }

    fileprivate mutating func append(_ work: EngineExecutor.Work, of user: UInt32?) {
        guard let user else { return own.append(work) }
        if requests[user, default: []].isEmpty { users.append(user) }
        requests[user, default: []].append(work)
        requestCount += 1
    }

    /// Some of the engine's own work, and a piece of each user's.
    fileprivate mutating func dequeueRound() -> [EngineExecutor.Work] {
        var round: [EngineExecutor.Work] = []
        round.reserveCapacity(min(own.count, EngineExecutor.ownInRound) + users.count)
        while round.count < EngineExecutor.ownInRound, let work = own.popFirst() { round.append(work) }
        for _ in 0..<users.count {
            guard let user = users.popFirst(), let work = requests[user]?.popFirst() else { continue }
            round.append(work)
            requestCount -= 1
            if requests[user]?.isEmpty == true { requests[user] = nil } else { users.append(user) }
        }
        return round
    }

    /// Whether somebody is to be asked to run what waits. The queue is asked also where a caller was, who may be slow.
    fileprivate mutating func mustAsk(_ runner: EngineExecutor.Runner) -> Bool {
        guard !isRunning, asked == .nobody || asked == .caller && runner == .queue else { return false }
        asked = runner
        return true
    }

    /// False where something runs, which runs also what waits, or where nothing waits.
    fileprivate mutating func begin(mayBeLong: Bool = false) -> Bool {
        // Whoever was asked has come. What there was can be gone by then, as its user pauses.
        if !isRunning { asked = .nobody }
        guard !isRunning, !isEmpty || mayBeLong && !long.users.isEmpty else { return false }
        isRunning = true
        return true
    }

    fileprivate mutating func beginHere() -> EngineExecutor.Beginning {
        if isRunning || isEmpty || asked == .queue { return .none }
        if count > EngineExecutor.mostFurther + 1 { return mustAsk(.queue) ? .queue : .none }
        return begin() ? .here(dequeueRound()) : .none
    }

    /// Ends a run, unless it `hasEnded`; true where the queue is to run what still waits.
    fileprivate mutating func endOrAskQueue(hasEnded: Bool) -> Bool {
        if !hasEnded { isRunning = false }
        return !(isEmpty && long.users.isEmpty) && mustAsk(.queue)
    }

    /// The next long piece, where it is its turn; nil also where other work comes first.
    fileprivate mutating func dequeueLong() -> (user: UInt32, piece: @Sendable () -> Void)? {
        if !isEmpty, long.rounds < EngineExecutor.roundsBetween {
            long.rounds += 1
            return nil
        }
        long.rounds = 0
        return long.popFirst()
    }
}

extension EngineExecutor.LongWork {
    fileprivate mutating func append(_ body: @escaping @Sendable () -> Void, of user: UInt32) {
        if pieces[user] == nil, pauses[user] == nil { users.append(user) }
        pieces[user, default: []].append(body)
    }

    fileprivate mutating func popFirst() -> (user: UInt32, piece: @Sendable () -> Void)? {
        guard let user = users.popFirst(), let piece = pieces[user]?.popFirst() else { return nil }
        if pieces[user]?.isEmpty == true { pieces[user] = nil } else { users.append(user) }
        return (user, piece)
    }

    /// Gives whether somebody has to end the pause.
    fileprivate mutating func pause(_ user: UInt32, from start: Int64, until end: Int64) -> Bool {
        users.removeAll { $0 == user }
        guard let old = pauses[user] else {
            pauses[user] = (start, end)
            return true
        }
        // Each pause ends: what a user has in the store all the time must not keep their pieces waiting for good.
        let latest = old.start.saturatingAdding(EngineExecutor.longestPause)
        pauses[user] = (old.start, min(max(end, old.end), latest))
        return false
    }

    /// All that waits, whoever pauses.
    fileprivate mutating func popAll() -> [@Sendable () -> Void] {
        defer {
            pieces = [:]
            users = []
        }
        return pieces.sorted { $0.key < $1.key }.flatMap(\.value)
    }

    /// Ends a pause, or gives how long it still is.
    fileprivate mutating func endPause(of user: UInt32, at now: Int64) -> Int64? {
        guard let end = pauses[user]?.end else { return nil }
        if end > now { return end - now }
        pauses[user] = nil
        if pieces[user] != nil { users.append(user) }
        return nil
    }
}
