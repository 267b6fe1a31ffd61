/// The result of leaving an upstream.
enum Leave {
    /// The waiter has no upstream, or its outcome is already on the way.
    case gone
    /// Other waiters still want the outcome, or the upstream was released unresolved.
    case left
    /// No other waiter wants the outcome.
    case unwanted(DeferredCore)
}

extension DeferredWaiter {
    /// Calls `body` with this waiter's marks and, if it has an upstream, the upstream and its marks, both locked.
    ///
    /// The second lock is only tried, so Deferreds need no lock order and a cycle cannot deadlock. `body` must not
    /// release any reference.
    final func withUpstream<R>(
        _ body: (_ marks: inout UInt32, _ upstream: DeferredCore?, _ upstreamMarks: inout UInt32) -> R
    ) -> R {
        var backoff = Backoff()
        while true {
            var marks = lock()
            guard let core = upstream.revived() else {
                var none: UInt32 = 0
                let result = body(&marks, nil, &none)
                unlock(marks)
                return result
            }
            if var theirs = core.tryLock() {
                let result = body(&marks, core, &theirs)
                core.unlock(theirs)
                unlock(marks)
                // Its last reference must not be released while a lock is held.
                withExtendedLifetime(core) {}
                return result
            }
            unlock(marks)
            withExtendedLifetime(core) {}
            backoff.pause()
        }
    }

    /// Withdraws its interest in the upstream's outcome and, if `unlinking`, stops waiting for it.
    final func leave(unlinking: Bool) -> Leave {
        withUpstream { marks, upstream, theirs -> Leave in
            guard let upstream else { return marks & Mark.orphaned != 0 ? .left : .gone }
            guard marks & Mark.resolved == 0, theirs & Mark.resolved == 0 else { return .gone }
            upstream.loseInterest(of: self)
            // The caller holds a reference to this one, so the reference released here is not the last.
            if unlinking { upstream.unlink(self) }
            return upstream.interest == 0 ? .unwanted(upstream) : .left
        }
    }
}

extension DeferredWaiter {
    /// Stops waiting and releases the closures, without cancelling anything.
    final func retire() {
        _ = leave(unlinking: true)
        orphan()
    }
}

extension DeferredCore {
    /// Stops counting a waiter of this one. Requires both locks.
    final func loseInterest(of waiter: DeferredWaiter) {
        guard waiter.isInterested else { return }
        #if !DEFECT_INTEREST
            waiter.isInterested = false
        #endif
        interest -= 1
    }
}
