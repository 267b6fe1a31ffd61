public import Synchronization

// Unchecked: Soundness.swift lists the lock of each field.
/// A waiter for a Deferred: a link of the chain, a member of a list, a callback or an awaiting task.
///
/// This class is public only because ``Deferred`` inherits from it.
///
/// A waiter is in the list of at most one Deferred, its upstream, which keeps it alive. The thread that removes a
/// waiter from that list decides what happens to it.
public class DeferredWaiter: @unchecked Sendable {
    /// The marks, one bit of which is the lock.
    @usableFromInline let word: Atomic<UInt32>
    /// The Deferred whose list it is in. `next`, `previous` and `isInterested` belong to this tie.
    @exclusivity(unchecked) final var upstream = UpstreamReference()
    /// The next waiter in the list; the list thereby owns its members.
    @exclusivity(unchecked) final var next: DeferredWaiter?
    @exclusivity(unchecked) final unowned var previous: DeferredWaiter?
    /// Whether it counts in its upstream's `interest`.
    @exclusivity(unchecked) final var isInterested: Bool
    /// The number of the latest progress that the upstream gave it.
    @exclusivity(unchecked) final var seen: UInt64 = 0

    @usableFromInline
    init(marks: UInt32, isInterested: Bool) {
        word = Atomic(marks)
        self.isInterested = isInterested
    }

    /// Prepares the waiter to run after the upstream has resolved, and to leave its list. Requires both locks.
    ///
    /// - Returns: The new marks.
    func leaveList(_ marks: UInt32) -> UInt32 { marks }

    /// Runs the waiter on the thread that delivers the resolved upstream's callbacks.
    func fire(from source: DeferredCore, _ trampoline: Trampoline.Reference) -> Next {
        preconditionFailure("every kind of waiter says what it does")
    }

    /// Runs on the waiter's own executor after ``fire(from:_:)`` handed it there.
    func runScheduled(from source: DeferredCore, _ trampoline: Trampoline.Reference) -> Next {
        preconditionFailure("only waiters with an executor are scheduled")
    }

    /// Handles an executor that released the job without running it.
    func dropScheduled() {}

    /// Passes on a progress value of the upstream.
    func progressed(from source: DeferredCore, _ update: ProgressUpdate, _ trampoline: Trampoline.Reference) {}

    /// Releases closures that can no longer be called, because it waits no more and has no outcome.
    func orphan() {}
}

// MARK: - The lock

extension DeferredWaiter {
    /// Locks and returns the previous marks, without `locked`. The thread must hold no other lock.
    @inlinable
    @inline(__always)
    final func lock() -> UInt32 {
        #if DEFERRED_YIELDS
            Schedule.point()
        #endif
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

    /// Unlocks and sets these marks.
    @inlinable
    @inline(__always)
    final func unlock(_ marks: UInt32) {
        word.store(marks & ~Mark.locked, ordering: .releasing)
        #if DEFERRED_YIELDS
            Schedule.point()
        #endif
    }

    @usableFromInline
    @inline(never)
    final func lockContended() -> UInt32 {
        var backoff = Backoff()
        while true {
            if let marks = tryLock() { return marks }
            backoff.pause()
        }
    }

    /// Locks unless the lock is taken; the only way to take a second lock.
    final func tryLock() -> UInt32? {
        #if DEFERRED_YIELDS
            Schedule.point()
        #endif
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

    /// The marks, with all writes that precede them.
    @inlinable final var marks: UInt32 {
        #if DEFERRED_YIELDS
            Schedule.point()
        #endif
        return word.load(ordering: .acquiring)
    }

    /// The marks that never change.
    final var constantMarks: UInt32 { word.load(ordering: .relaxed) }
}
