/// The bits of a waiter's word; all but `locked` change only while the word is locked.
@usableFromInline
enum Mark {
    /// Somebody reads or changes the fields.
    @inlinable static var locked: UInt32 { 1 << 0 }
    /// The outcome stands; of a waiter that is no Deferred: it ran or was retired.
    @inlinable static var resolved: UInt32 { 1 << 1 }
    /// The outcome is a failure.
    @inlinable static var failed: UInt32 { 1 << 2 }
    /// A thread runs the callbacks; what is added now is left to it.
    @inlinable static var delivering: UInt32 { 1 << 3 }
    /// `resolve(with:)` decided where the outcome comes from.
    @inlinable static var committed: UInt32 { 1 << 4 }
    /// Cancellation passed through here.
    @inlinable static var cancelled: UInt32 { 1 << 5 }
    /// Nothing is left that could resolve it.
    @inlinable static var orphaned: UInt32 { 1 << 6 }
    /// Counts in its upstream's `interest`.
    @inlinable static var interested: UInt32 { 1 << 7 }
    /// Somebody took over the responsibility for a failure.
    @inlinable static var looked: UInt32 { 1 << 8 }
    /// Runs on an executor other than `.inline`.
    @inlinable static var hops: UInt32 { 1 << 9 }
    /// Handed to its executor, not started yet.
    @inlinable static var scheduled: UInt32 { 1 << 10 }
    /// Waits for the Deferred that its closure (or `resolve(with:)`) named.
    @inlinable static var paused: UInt32 { 1 << 11 }
    /// Wants its upstream's progress.
    @inlinable static var followsProgress: UInt32 { 1 << 12 }
    /// `Failure` is `any Error`: cancellation fails it when nobody else decides.
    @inlinable static var erased: UInt32 { 1 << 13 }
    /// `Failure` can hold a `CancellationError`.
    @inlinable static var holdsCancellation: UInt32 { 1 << 14 }
    /// What it is paused on has its own type, so its waiters could as well wait for that.
    @inlinable static var transparent: UInt32 { 1 << 15 }
    /// Is a Deferred and not another kind of waiter.
    @inlinable static var deferred: UInt32 { 1 << 16 }
}
