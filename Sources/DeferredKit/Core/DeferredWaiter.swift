public import Synchronization

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

// Unchecked: every field is read and written under the lock in `word`, or by the one thread that took the waiter out
// of its upstream's list.
/// Whatever waits for a Deferred: a link of the chain, a member of a list, a callback, an awaiting task.
///
/// It is public because ``Deferred`` inherits from it, and of no use by itself.
///
/// A waiter is in the list of at most one Deferred, its upstream, which keeps it alive. The way back is not a strong
/// reference: the upstream clears it when it goes. Whoever takes a waiter out of that list owns what the waiter holds.
public class DeferredWaiter: @unchecked Sendable {
    @usableFromInline let word: Atomic<UInt32>
    /// How many of the waiters in a Deferred's list want its outcome so much that without them it is cancelled.
    @usableFromInline @exclusivity(unchecked) final var interest: Int32 = 0
    @usableFromInline @exclusivity(unchecked) final var next: Unmanaged<DeferredWaiter>?
    @usableFromInline @exclusivity(unchecked) final var previous: Unmanaged<DeferredWaiter>?
    /// Valid while locked and unresolved: the upstream cannot go without clearing it, and to clear it takes the lock.
    @usableFromInline @exclusivity(unchecked) final var upstream: Unmanaged<DeferredCore>?

    @inlinable
    init(marks: UInt32) {
        word = Atomic(marks)
    }

    /// Runs when the upstream has resolved, on the thread that delivers its callbacks.
    func fire(from source: DeferredCore, _ trampoline: Trampoline.Reference) {
        preconditionFailure("every kind of waiter says what it does")
    }

    /// Runs on the waiter's own executor after ``fire(from:_:)`` handed it there.
    func runScheduled(from source: DeferredCore, _ trampoline: Trampoline.Reference) {
        preconditionFailure("only waiters with an executor are scheduled")
    }

    /// Passes on a progress value of the upstream.
    func progressed(from source: DeferredCore, _ update: ProgressUpdate, _ trampoline: Trampoline.Reference) {}

    /// The upstream is gone without an outcome: releases what can no longer be called.
    func orphan() {}
}

// MARK: - The lock

extension DeferredWaiter {
    /// Locks and returns the marks as they are, without `locked`.
    @inlinable
    @inline(__always)
    final func lock() -> UInt32 {
        let now = word.load(ordering: .relaxed)
        if now & Mark.locked == 0,
            word.weakCompareExchange(
                expected: now,
                desired: now | Mark.locked,
                successOrdering: .acquiring,
                failureOrdering: .relaxed
            ).exchanged
        {
            return now
        }
        return lockContended()
    }

    /// Unlocks and leaves these marks.
    @inlinable
    @inline(__always)
    final func unlock(_ marks: UInt32) {
        word.store(marks & ~Mark.locked, ordering: .releasing)
    }

    @usableFromInline
    @inline(never)
    final func lockContended() -> UInt32 {
        var rounds = 0
        while true {
            if let marks = tryLock() { return marks }
            rounds += 1
            // Nothing slow happens under the lock, so a holder that stays was most likely preempted.
            if rounds > 64 { sched_yield() }
        }
    }

    final func tryLock() -> UInt32? {
        let now = word.load(ordering: .relaxed)
        guard now & Mark.locked == 0 else { return nil }
        let exchange = word.compareExchange(
            expected: now,
            desired: now | Mark.locked,
            successOrdering: .acquiring,
            failureOrdering: .relaxed
        )
        return exchange.exchanged ? now : nil
    }

    /// The marks, with whatever was written before they were set.
    @inlinable final var marks: UInt32 { word.load(ordering: .acquiring) }

    /// The marks, where nothing else depends on them.
    final var loneMarks: UInt32 { word.load(ordering: .relaxed) }

    final func give(way rounds: inout Int) {
        rounds += 1
        if rounds > 16 { sched_yield() }
    }
}
