import Dispatch

extension Deferred {
    /// Waits for the outcome in an asynchronous context.
    ///
    /// An awaiting task is an interested consumer until it is cancelled. Then it throws a `CancellationError` at once
    /// if `Failure` can hold one; otherwise it continues to wait, but no longer prevents the cancellation of the work.
    ///
    /// - Returns: The value.
    /// - Throws: The failure.
    @inlinable
    public func get() async throws(Failure) -> Success {
        if marks & Mark.resolved == 0, await !arrival(), let error = CancellationError() as? Failure { throw error }
        if marks & (Mark.failed | Mark.looked) == Mark.failed { look() }
        return try storage.unsafelyUnwrapped.get()
    }

    /// Blocks the calling thread until there is an outcome.
    ///
    /// Never call it on a thread that the Deferred needs to resolve, such as a thread of Swift's own pool.
    ///
    /// When called in a callback, it first runs the callbacks that have become due.
    ///
    /// - Parameter timeout: The longest time to wait.
    /// - Returns: The outcome, or nil on a timeout.
    @available(*, noasync)
    public func wait(timeout: Duration) -> Outcome? {
        if let outcome { return outcome }
        Trampoline.catchUp()
        if let outcome { return outcome }
        let semaphore = DispatchSemaphore(value: 0)
        let waiter = OutcomeWaiter(hopping: false, isInterested: true) { _, _, _ in semaphore.signal() }
        append(waiter, leaving: Mark.looked)
        let (seconds, attoseconds) = timeout.components
        // Saturates: a time that is too long for nanoseconds is for ever.
        let rest = DispatchTimeInterval.nanoseconds(Int(attoseconds / 1_000_000_000))
        let deadline = DispatchTime.now() + .seconds(Int(max(seconds, 0))) + rest
        // A timeout of the wait does not cancel the work.
        if semaphore.wait(timeout: deadline) == .timedOut { waiter.retire() }
        return outcome
    }
}
