/// What a waiter finds when it stops wanting its upstream's outcome.
enum Leave {
    /// It waits for nothing, or the outcome is on its way already.
    case gone
    /// The upstream is gone and never resolved.
    case orphaned
    /// Others still want the outcome.
    case wanted
    /// Nobody else wants the outcome.
    case unwanted(DeferredCore)
}

/// A way to turn the address of a Deferred, whose memory cannot go meanwhile, into a strong reference.
private struct Revival {
    weak var core: DeferredCore?

    @inline(never)
    func load() -> DeferredCore? { core }
}

extension Unmanaged<DeferredCore> {
    /// A strong reference, or nil when the last one is gone and only the memory is still there.
    ///
    /// Forming a weak reference to an object that is being released gives nil, which is the question here.
    @inline(never)
    func revived() -> DeferredCore? {
        let unsafe = takeUnretainedValue()
        let revival = Revival(core: unsafe)
        let strong = revival.load()
        // Until here, so that the reference above is never the last one.
        withExtendedLifetime(unsafe) {}
        return strong
    }
}

extension DeferredWaiter {
    /// Calls `body` with this waiter's marks and, if it waits for one, its upstream and the upstream's marks, both
    /// locked.
    ///
    /// The second lock is only tried, so no order between Deferreds is needed and a cycle cannot deadlock. Nothing
    /// may be released inside `body`.
    final func withUpstream<R>(
        _ body: (_ marks: inout UInt32, _ upstream: DeferredCore?, _ upstreamMarks: inout UInt32) -> R
    ) -> R {
        var rounds = 0
        while true {
            var marks = lock()
            guard marks & Mark.resolved == 0, let core = upstream?.revived() else {
                var none: UInt32 = 0
                let result = body(&marks, nil, &none)
                unlock(marks)
                return result
            }
            if var theirs = core.tryLock() {
                let result = body(&marks, core, &theirs)
                core.unlock(theirs)
                unlock(marks)
                // Its last reference must not go while a lock is held.
                withExtendedLifetime(core) {}
                return result
            }
            unlock(marks)
            withExtendedLifetime(core) {}
            give(way: &rounds)
        }
    }

    /// Stops wanting the upstream's outcome and, if `unlinking`, stops waiting for it.
    final func leave(unlinking: Bool) -> Leave {
        var kept: Unmanaged<DeferredWaiter>?
        let result = withUpstream { marks, upstream, theirs -> Leave in
            guard let upstream else { return marks & Mark.orphaned != 0 ? .orphaned : .gone }
            guard theirs & Mark.resolved == 0 else { return .gone }
            if marks & Mark.interested != 0 {
                marks &= ~Mark.interested
                upstream.interest -= 1
            }
            if unlinking { kept = upstream.unlink(self) }
            return upstream.interest == 0 ? .unwanted(upstream) : .wanted
        }
        kept?.release()
        return result
    }
}
