import Dispatch

// Unchecked: its own field never changes; the base class guards the rest.
/// A thread that blocks until the outcome is there.
final class BlockingWaiter: DeferredWaiter, @unchecked Sendable {
    private let semaphore = DispatchSemaphore(value: 0)

    init() {
        super.init(marks: 0, isInterested: true)
    }

    func wait(_ timeout: Duration) {
        let (seconds, attoseconds) = timeout.components
        let isEndless = seconds > Int64(Int32.max)
        let nanoseconds = isEndless ? 0 : Int(seconds) * 1_000_000_000 + Int(attoseconds / 1_000_000_000)
        let deadline: DispatchTime = isEndless ? .distantFuture : .now() + .nanoseconds(max(nanoseconds, 0))
        // A timeout of the wait does not cancel the work.
        if semaphore.wait(timeout: deadline) == .timedOut { _ = leave(unlinking: true) }
    }

    override func fire(from source: DeferredCore, _ trampoline: Trampoline.Reference) -> Next {
        unlock(lock() | Mark.resolved)
        semaphore.signal()
        return .done
    }
}
