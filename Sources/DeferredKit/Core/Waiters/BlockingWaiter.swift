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
        // Saturates: a time that is too long for nanoseconds is for ever.
        let rest = DispatchTimeInterval.nanoseconds(Int(attoseconds / 1_000_000_000))
        let deadline = DispatchTime.now() + .seconds(Int(max(seconds, 0))) + rest
        // A timeout of the wait does not cancel the work.
        if semaphore.wait(timeout: deadline) == .timedOut { _ = leave(unlinking: true) }
    }

    override func fire(from source: DeferredCore, _ trampoline: Trampoline.Reference) -> Next {
        unlock(lock() | Mark.resolved)
        semaphore.signal()
        return .done
    }
}
