/// One callback of a Deferred, to be stopped when it is no longer wanted.
///
/// Dropping it changes nothing; the callback stays.
public struct Observation: Sendable {
    @usableFromInline let waiter: ObservingWaiter

    @inlinable
    init(_ waiter: ObservingWaiter) {
        self.waiter = waiter
    }

    /// Stops the callback, never the work, from any thread.
    ///
    /// After this it does not begin to run; it may be running already.
    public func cancel() {
        waiter.retire()
    }
}
