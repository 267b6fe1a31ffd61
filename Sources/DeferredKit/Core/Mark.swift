/// The bits of a waiter's word; all but `locked` change only while the word is locked.
@usableFromInline
enum Mark {
    /// A thread is reading or changing the fields.
    @inlinable static var locked: UInt32 { 1 << 0 }
    /// The outcome is set; for a waiter that is not a Deferred: it ran or was retired.
    @inlinable static var resolved: UInt32 { 1 << 1 }
    /// The outcome is a failure.
    @inlinable static var failed: UInt32 { 1 << 2 }
    /// A thread runs the callbacks, including callbacks added meanwhile.
    @inlinable static var delivering: UInt32 { 1 << 3 }
    /// `resolve(with:)` decided where the outcome comes from.
    @inlinable static var committed: UInt32 { 1 << 4 }
    /// Cancellation passed through here.
    @inlinable static var cancelled: UInt32 { 1 << 5 }
    /// No producer or upstream is left to resolve it.
    @inlinable static var orphaned: UInt32 { 1 << 6 }
    /// Its `onCancel` is being called; an outcome from that call wins.
    @inlinable static var asking: UInt32 { 1 << 7 }
    /// A consumer has looked at the failure and is responsible for it.
    @inlinable static var looked: UInt32 { 1 << 8 }
    /// Runs on an executor other than `.inline`. Never changes.
    @inlinable static var hops: UInt32 { 1 << 9 }
    /// Handed to its executor, not started yet.
    @inlinable static var scheduled: UInt32 { 1 << 10 }
    /// A thread computes its outcome, or the Deferred to wait for next.
    @inlinable static var running: UInt32 { 1 << 11 }
    /// Wants its upstream's progress. Never changes.
    @inlinable static var followsProgress: UInt32 { 1 << 12 }
    /// `Failure` is `any Error`: cancellation fails it if no producer decides. Never changes.
    @inlinable static var erased: UInt32 { 1 << 13 }
    /// `Failure` can hold a `CancellationError`. Never changes.
    @inlinable static var holdsCancellation: UInt32 { 1 << 14 }
    /// Waits for a Deferred of its own type, whose outcome becomes its own unchanged.
    @inlinable static var transparent: UInt32 { 1 << 15 }
    /// Left the chain in favour of the Deferred in `forward`.
    @inlinable static var forwarded: UInt32 { 1 << 16 }
}
