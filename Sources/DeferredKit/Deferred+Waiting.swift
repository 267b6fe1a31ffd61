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
