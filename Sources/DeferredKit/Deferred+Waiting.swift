import Dispatch

extension Deferred {
    /// Waits for the outcome in an asynchronous context.
    ///
    /// An awaiting task is an interested consumer until it is cancelled. Then it throws a `CancellationError` at
    /// once where `Failure` can hold one; otherwise it goes on waiting, but no longer keeps the work from being
    /// cancelled.
    ///
    /// - Returns: The value.
    /// - Throws: The failure.
    @inlinable
    public func get() async throws(Failure) -> Success {
        if marks & Mark.resolved == 0, await !arrival(), let error = CancellationError() as? Failure { throw error }
        if marks & (Mark.failed | Mark.looked) == Mark.failed { look() }
        return try storage.unsafelyUnwrapped.get()
    }

    /// Blocks the calling thread until the outcome is there. Never call it on a thread that has to resolve the
    /// Deferred, such as one of Swift's own pool.
    ///
    /// Called in a callback, it first runs what that callback has made due so far.
    ///
    /// - Parameter timeout: How long to wait at most.
    /// - Returns: The outcome, or nil if the time is over.
    @available(*, noasync)
    public func wait(timeout: Duration) -> Outcome? {
        if let outcome { return outcome }
        Trampoline.catchUp()
        if let outcome { return outcome }
        let waiter = BlockingWaiter()
        append(waiter, leaving: Mark.looked)
        waiter.wait(timeout)
        return outcome
    }
}

// Unchecked: its own field never changes; the base class guards the rest.
/// A thread that blocks until the outcome is there.
private final class BlockingWaiter: DeferredWaiter, @unchecked Sendable {
    private let semaphore = DispatchSemaphore(value: 0)

    init() {
        super.init(marks: Mark.interested)
    }

    func wait(_ timeout: Duration) {
        let (seconds, attoseconds) = timeout.components
        let isEndless = seconds > Int64(Int32.max)
        let nanoseconds = isEndless ? 0 : Int(seconds) * 1_000_000_000 + Int(attoseconds / 1_000_000_000)
        let deadline: DispatchTime = isEndless ? .distantFuture : .now() + .nanoseconds(max(nanoseconds, 0))
        // Whoever is tired of waiting does not thereby cancel the work.
        if semaphore.wait(timeout: deadline) == .timedOut { _ = leave(unlinking: true) }
    }

    override func fire(from source: DeferredCore, _ trampoline: Trampoline.Reference) {
        let marks = lock()
        upstream = nil
        unlock(marks | Mark.resolved)
        semaphore.signal()
    }
}

extension DeferredCore {
    /// Waits for the outcome; false if the task was cancelled and `Failure` can hold that.
    @usableFromInline
    final func arrival() async -> Bool {
        let waiter = AwaitingWaiter(throwing: marks & Mark.holdsCancellation != 0)
        return await withTaskCancellationHandler {
            await withUnsafeContinuation { waiter.start($0, waitingFor: self) }
        } onCancel: {
            waiter.cancel()
        }
    }
}

// Unchecked: `continuation` is set before anybody else knows the waiter, and resumed by whoever ends the waiting.
/// An awaiting task.
private final class AwaitingWaiter: DeferredWaiter, @unchecked Sendable {
    private var continuation: UnsafeContinuation<Bool, Never>?
    private let canThrow: Bool

    init(throwing canThrow: Bool) {
        self.canThrow = canThrow
        super.init(marks: Mark.interested)
    }

    func start(_ continuation: UnsafeContinuation<Bool, Never>, waitingFor core: DeferredCore) {
        self.continuation = continuation
        core.append(self, leaving: Mark.looked)
        let marks = lock()
        unlock(marks | Mark.committed)
        if marks & Mark.cancelled != 0 { withdraw() }
    }

    func cancel() {
        let marks = lock()
        unlock(marks | Mark.cancelled)
        // Before `start` is through there is nothing to withdraw from yet; it looks at the mark itself.
        if marks & Mark.committed != 0 { withdraw() }
    }

    private func withdraw() {
        let leave = leave(unlinking: canThrow)
        switch leave {
        case .gone, .orphaned: return
        case .wanted: if canThrow { continuation?.resume(returning: false) }
        case .unwanted(let upstream):
            if canThrow { continuation?.resume(returning: false) }
            upstream.abandon()
        }
    }

    override func fire(from source: DeferredCore, _ trampoline: Trampoline.Reference) {
        let marks = lock()
        upstream = nil
        unlock(marks | Mark.resolved)
        continuation?.resume(returning: true)
    }
}
