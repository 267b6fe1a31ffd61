import DeferredKit
package import Dispatch
import Glibc
import Synchronization

/// Runs the engine's work, one piece after another. It is both the executor of the engine's actor and that of callbacks
/// of Deferreds, so a callback runs on the engine without a task.
///
/// States: idle, and running on one thread, which is that of `queue` or of a caller of ``runNow(_:further:)``. What is
/// submitted while it is idle wakes `queue`; what comes while it runs waits for its turn, in the order of the calls.
package final class EngineExecutor: SerialExecutor, CallbackExecutor {
    fileprivate enum Work {
        case job(UnownedJob)
        case body(@Sendable () -> Void)
    }

    fileprivate struct State {
        var waiting: [Work] = []
        var isRunning = false
    }

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
        let mustWake = state.withLock { state in
            state.waiting.append(work)
            defer { state.isRunning = true }
            return !state.isRunning
        }
        if mustWake { queue.async { self.drain() } }
    }

    /// Runs `body` on the calling thread where nothing runs, and at most `further` pieces that came meanwhile; elsewhere
    /// and later where something does. This spares a change of threads there and another back.
    package func runNow(_ body: @escaping @Sendable () -> Void, further: Int) {
        let isFree = state.withLock { state in
            if state.isRunning { state.waiting.append(.body(body)) }
            defer { state.isRunning = true }
            return !state.isRunning
        }
        guard isFree else { return }
        run([.body(body)])
        var left = further
        while left > 0, let work = dequeueAllOrEnd() {
            run(work)
            left -= work.count
        }
        if left <= 0, state.withLock({ $0.endIfNothingWaits() }) == false { queue.async { self.drain() } }
    }

    private func drain() {
        while let work = dequeueAllOrEnd() { run(work) }
    }

    /// All that waits; nil where nothing does, and then nothing runs any more.
    private func dequeueAllOrEnd() -> [Work]? {
        state.withLock { state in
            if state.endIfNothingWaits() { return nil }
            defer { state.waiting = [] }
            return state.waiting
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
    /// True where nothing waits; nothing runs from then on.
    fileprivate mutating func endIfNothingWaits() -> Bool {
        if waiting.isEmpty { isRunning = false }
        return waiting.isEmpty
    }
}
