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
    /// Its `onCancel` is being called; what that resolves it with wins.
    @inlinable static var asking: UInt32 { 1 << 7 }
    /// Somebody has looked at the failure and is responsible for it.
    @inlinable static var looked: UInt32 { 1 << 8 }
    /// Runs on an executor other than `.inline`. Never changes.
    @inlinable static var hops: UInt32 { 1 << 9 }
    /// Handed to its executor, not started yet.
    @inlinable static var scheduled: UInt32 { 1 << 10 }
    /// A thread computes its outcome, or what it waits for next.
    @inlinable static var running: UInt32 { 1 << 11 }
    /// Wants its upstream's progress. Never changes.
    @inlinable static var followsProgress: UInt32 { 1 << 12 }
    /// `Failure` is `any Error`: cancellation fails it when nobody else decides. Never changes.
    @inlinable static var erased: UInt32 { 1 << 13 }
    /// `Failure` can hold a `CancellationError`. Never changes.
    @inlinable static var holdsCancellation: UInt32 { 1 << 14 }
    /// Waits for a Deferred of its own type, whose outcome becomes its own unchanged.
    @inlinable static var transparent: UInt32 { 1 << 15 }
    /// Left the chain in favour of what it would wait for, which is in `forward`.
    @inlinable static var forwarded: UInt32 { 1 << 16 }
}
