package import DeferredKit
package import Dispatch
import Glibc
import Synchronization

/// Runs the engine's work, one piece after another. It is both the executor of the engine's actor and that of callbacks
/// of Deferreds, so a callback runs on the engine without a task.
///
/// States: running on one thread; idle; and between both, where work waits that somebody was asked to run. A thread that
/// comes then with work of its own runs all of it, so that nothing waits for one that is slow to come.
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
        var waiting: [Work] = []
        var isRunning = false
        var asked = Runner.nobody
    }

    /// The most pieces that a thread runs beside its own before the queue goes on.
    package static let mostFurther = 16

    /// Runs the work that no caller runs.
    package let queue: DispatchQueue
    private let state = Mutex(State())
    /// The thread that runs work; 0 while none does.
    private let runner = Atomic<UInt>(0)

    package init() {
        queue = DispatchQueue(label: "deferd.engine")
    }

    package func enqueue(_ job: consuming ExecutorJob) {
        submit(.job(UnownedJob(job)))
    }

    package func submit(_ job: @escaping @Sendable () -> Void) {
        submit(.body(job))
    }

    private func submit(_ work: Work) {
        let mustAsk = state.withLock { state in
            state.waiting.append(work)
            return state.mustAsk(.queue)
        }
        if mustAsk { queue.async { self.drain() } }
    }

    /// Has `executor` run `job`, unless something runs or comes before that; then it is run there.
    package func submit(on executor: any CallbackExecutor, _ job: @escaping @Sendable () -> Void) {
        let mustAsk = state.withLock { state in
            state.waiting.append(.body(job))
            return state.mustAsk(.caller)
        }
        if mustAsk { executor.submit { self.runWaiting() } }
    }

    /// Runs `body` on the calling thread where nothing runs, after what waits, and at most `further` pieces that came
    /// meanwhile; elsewhere and later where something does. This spares a change of threads there and another back.
    package func runNow(_ body: @escaping @Sendable () -> Void, further: Int) {
        let beginning = state.withLock { state in
            state.waiting.append(.body(body))
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
        while left > 0, let work = dequeueAllOrEnd() {
            run(work)
            left -= work.count
        }
        if left <= 0, state.withLock({ $0.endOrAskQueue() }) { queue.async { self.drain() } }
    }

    private func drain() {
        guard state.withLock({ $0.begin() }) else { return }
        while let work = dequeueAllOrEnd() { run(work) }
    }

    /// All that waits; nil where nothing does, and then nothing runs any more.
    private func dequeueAllOrEnd() -> [Work]? {
        state.withLock { state in
            if state.waiting.isEmpty {
                state.isRunning = false
                return nil
            }
            return state.removeAll()
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
    /// Whether somebody is to be asked to run what waits. The queue is asked also where a caller was, who may be slow.
    fileprivate mutating func mustAsk(_ runner: EngineExecutor.Runner) -> Bool {
        guard !isRunning, asked == .nobody || asked == .caller && runner == .queue else { return false }
        asked = runner
        return true
    }

    /// False where something runs, which runs also what waits, or where nothing waits.
    fileprivate mutating func begin() -> Bool {
        guard !isRunning, !waiting.isEmpty else { return false }
        isRunning = true
        asked = .nobody
        return true
    }

    fileprivate mutating func beginHere() -> EngineExecutor.Beginning {
        if isRunning || waiting.isEmpty || asked == .queue { return .none }
        if waiting.count > EngineExecutor.mostFurther + 1 { return mustAsk(.queue) ? .queue : .none }
        return begin() ? .here(removeAll()) : .none
    }

    fileprivate mutating func removeAll() -> [EngineExecutor.Work] {
        defer { waiting = [] }
        return waiting
    }

    /// Ends a run; true where the queue is to run what still waits.
    fileprivate mutating func endOrAskQueue() -> Bool {
        isRunning = false
        return !waiting.isEmpty && mustAsk(.queue)
    }
}
