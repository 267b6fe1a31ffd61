package import DeferredKit
import DequeModule
package import Dispatch
import Glibc
import Synchronization

/// Runs the engine's work, one piece after another. It is both the executor of the engine's actor and that of callbacks
/// of Deferreds, so a callback runs on the engine without a task.
///
/// States: running on one thread; idle; and between both, where work waits that somebody was asked to run. A thread that
/// comes then with work of its own runs that too, so that nothing waits for one that is slow to come.
///
/// The engine's own work goes in the order of the calls, and so does that of each user; users take turns with each other and
/// with the engine's own work, so that whoever asks for much stands in nobody's way but their own.
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
    }

    /// The most pieces that a thread runs beside its own before the queue goes on.
    package static let mostFurther = 16

    /// Pieces of the engine's own work in each round: answers of the store and of sources, of which requests in progress make
    /// some each.
    fileprivate static let ownInRound = 8

    /// Runs the work that no caller runs.
    package let queue: DispatchQueue
    private let state = Mutex(State())
    /// The thread that runs work; 0 while none does.
    private let runner = Atomic<UInt>(0)

    package init() {
        queue = DispatchQueue(label: "deferd.engine")
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
        if left <= 0, state.withLock({ $0.endOrAskQueue() }) { queue.async { self.drain() } }
    }

    private func drain() {
        guard state.withLock({ $0.begin() }) else { return }
        while let work = dequeueRoundOrEnd() { run(work) }
    }

    /// What runs next; nil where nothing waits, and then nothing runs any more.
    private func dequeueRoundOrEnd() -> [Work]? {
        state.withLock { state in
            if state.isEmpty {
                state.isRunning = false
                return nil
            }
            return state.dequeueRound()
        }
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
    fileprivate mutating func begin() -> Bool {
        guard !isRunning, !isEmpty else { return false }
        isRunning = true
        asked = .nobody
        return true
    }

    fileprivate mutating func beginHere() -> EngineExecutor.Beginning {
        if isRunning || isEmpty || asked == .queue { return .none }
        if count > EngineExecutor.mostFurther + 1 { return mustAsk(.queue) ? .queue : .none }
        return begin() ? .here(dequeueRound()) : .none
    }

    /// Ends a run; true where the queue is to run what still waits.
    fileprivate mutating func endOrAskQueue() -> Bool {
        isRunning = false
        return !isEmpty && mustAsk(.queue)
    }
}
