extension DeferredCore {
    /// Adds a waiter that no other thread knows yet, and runs it if there is an outcome.
    @usableFromInline
    final func append(_ waiter: DeferredWaiter, leaving added: UInt32) {
        var marks = lock()
        #if !DEFECT_STEP_BACK
            while marks & Mark.forwarded != 0 {
                unlock(marks)
                stepBack()
                marks = lock()
            }
        #endif
        let linked = link(waiter, marks)
        unlock(linked | added)
        if linked != marks { Trampoline.deliver(self, Trampoline.current) }
    }

    /// Appends to the list. Requires both locks, or a waiter that no other thread knows.
    ///
    /// - Returns: The new marks: if they differ, there is something to deliver, and the caller must do so.
    final func link(_ waiter: DeferredWaiter, _ marks: UInt32) -> UInt32 {
        waiter.upstream.set(self)
        if let former = last ?? head {
            waiter.previous = former
            former.next = waiter
            last = waiter
        } else {
            head = waiter
        }
        if waiter.isInterested { interest += 1 }
        if waiter.constantMarks & Mark.followsProgress != 0 {
            followers += 1
            if marks & Mark.resolved == 0, let extras { shareProgress(of: extras, with: waiter) }
        }
        let hasMore = marks & Mark.resolved != 0 || extras?.rounds.isEmpty == false
        return hasMore ? marks | Mark.delivering : marks
    }

    /// Removes a waiter, whose last reference must not be the list's. Requires both locks.
    final func unlink(_ waiter: DeferredWaiter) {
        if waiter.constantMarks & Mark.followsProgress != 0 { followers -= 1 }
        // A round of progress may have come to any waiter.
        if let extras { skip(waiter, in: extras) }
        if waiter.isInterested { interest -= 1 }
        let next = waiter.next.take()
        if let previous = waiter.previous {
            next?.previous = previous
            previous.next = next
            if next == nil { last = previous }
        } else {
            next?.previous = nil
            head = next
        }
        if last === head { last = nil }
        waiter.previous = nil
        waiter.upstream.clear()
    }

    /// Completes a resolution: unlocks with these marks and delivers. Requires the lock and a stored outcome.
    @usableFromInline
    final func publish(_ marks: UInt32, _ trampoline: Trampoline.Reference?) {
        // Closures that can no longer be called are released after unlocking.
        let parting = extras?.strip()
        if extras?.latest == nil { extras = nil }
        let starts = marks & Mark.delivering == 0 && head != nil
        unlock(marks | (starts ? Mark.delivering : 0))
        if starts { Trampoline.deliver(self, trampoline ?? Trampoline.current) }
        withExtendedLifetime(parting) {}
    }

    /// Runs one callback and returns whether there are more.
    final func deliverNext(_ trampoline: Trampoline.Reference) -> Bool {
        var backoff = Backoff()
        while true {
            let marks = lock()
            guard marks & Mark.resolved != 0 else { return deliverProgress(marks, trampoline) }
            guard var waiter = head else {
                unlock(marks & ~Mark.delivering)
                return false
            }
            guard let theirs = waiter.tryLock() else {
                unlock(marks)
                backoff.pause()
                continue
            }
            unlink(waiter)
            let hasMore = head != nil
            unlock(marks)
            waiter.unlock(waiter.leaveList(theirs))
            // From here on, this thread alone decides about this waiter.
            if case .follow(let following) = waiter.fire(from: self, trampoline) {
                DeferredCore.pause(&waiter, following, trampoline)
            }
            return hasMore || continues()
        }
    }

    /// Returns whether there is more to deliver; otherwise the delivery has ended.
    private final func continues() -> Bool {
        #if DEFECT_EARLY_LOOK
            let hasMore = head != nil
            let marks = lock()
        #else
            let marks = lock()
            let hasMore = head != nil
        #endif
        unlock(hasMore ? marks : marks & ~Mark.delivering)
        return hasMore
    }

    /// Releases all waiters, because this Deferred will never resolve.
    final func abandonWaiters() {
        var orphans: [DeferredWaiter] = []
        while let waiter = popOrphan() { orphans.append(waiter) }
        Trampoline.release(&orphans)
    }

    private final func popOrphan() -> DeferredWaiter? {
        var backoff = Backoff()
        while true {
            let marks = lock()
            guard marks & Mark.resolved == 0, let waiter = head else {
                unlock(marks)
                return nil
            }
            guard let theirs = waiter.tryLock() else {
                unlock(marks)
                withExtendedLifetime(waiter) {}
                backoff.pause()
                continue
            }
            unlink(waiter)
            waiter.unlock(theirs | Mark.orphaned)
            unlock(marks)
            return waiter
        }
    }
}
