extension DeferredCore {
    /// Makes a link wait for the Deferred that its closure returned. `waiter` is the deliverer's reference to the link.
    static func pause(_ waiter: inout DeferredWaiter, _ following: Following, _ trampoline: Trampoline.Reference) {
        let isUnknown = following.isTransparent && isKnownUniquelyReferenced(&waiter)
        let link = unsafeDowncast(waiter, to: DeferredCore.self)
        if isUnknown, link.stepAside(for: following, trampoline) { return }
        link.wait(for: following, wasCancelled: false, trampoline)
    }

    /// Binds a promise's Deferred, which must not be resolved or bound yet.
    ///
    /// - Parameter passesOn: Whether a cancellation before is passed on.
    /// - Returns: Whether it was still open.
    @usableFromInline
    @discardableResult
    final func bind(to following: Following, passesOn: Bool = false, _ trampoline: Trampoline.Reference) -> Bool {
        let barrier = Mark.resolved | Mark.committed
        if following.inner === self { return failWithCycle(unless: barrier, trampoline) }
        let marks = lock()
        guard marks & barrier == 0 else {
            unlock(marks)
            return false
        }
        let onCancel = extras?.onCancel
        extras?.onCancel = nil
        unlock(marks | Mark.committed | Mark.running)
        withExtendedLifetime(onCancel) {}
        wait(for: following, wasCancelled: !passesOn && marks & Mark.cancelled != 0, trampoline)
        return true
    }

    /// Waits for another Deferred, on the thread that runs this one.
    ///
    /// - Parameter wasCancelled: Whether cancellation has already passed through; it is not passed on again.
    private final func wait(for following: Following, wasCancelled: Bool, _ trampoline: Trampoline.Reference) {
        let inner = following.inner
        if inner === self {
            failWithCycle(unless: Mark.resolved, trampoline)
            return
        }
        var backoff = Backoff()
        while true {
            let marks = lock()
            guard marks & Mark.resolved == 0 else {
                unlock(marks)
                return inner.loseConsumer(trampoline)
            }
            #if DEFECT_CHECK_THEN_ACT
                unlock(marks)
                _ = lock()
            #endif
            guard let theirs = inner.tryLock() else {
                unlock(marks)
                backoff.pause()
                continue
            }
            if theirs & Mark.forwarded != 0 {
                inner.unlock(theirs)
                unlock(marks)
                inner.stepBack()
                continue
            }
            if theirs & (Mark.resolved | Mark.delivering) == Mark.resolved {
                inner.unlock(theirs | Mark.looked)
                unlock(marks)
                _ = following.step(inner, self, trampoline, false)
                return
            }
            // A link whose cancellation was left to a producer passes it on to what its closure returned.
            let passesOn = marks & Mark.cancelled != 0 && !wasCancelled
            isInterested = !passesOn
            step = following.step
            let linked = inner.link(self, theirs)
            let isAwaited = head != nil
            inner.unlock(linked | Mark.looked)
            unlock((marks & ~Mark.running) | (following.isTransparent ? Mark.transparent : 0))
            if linked != theirs { Trampoline.deliver(inner, trampoline) }
            // All waiters that reach it through other Deferreds have arrived by now.
            if isAwaited, failsAsCycle(by: inner, trampoline) { return }
            if passesOn { inner.loseConsumer(trampoline) }
            return
        }
    }

    // MARK: Short chains

    /// Leaves the chain: its only waiter, which takes its outcome unchanged, waits for `following` instead.
    ///
    /// Otherwise, a loop of `flatMap`s would grow with every round. Afterwards, this Deferred is most likely released;
    /// if another reference exists, the first use of it makes it wait after all.
    ///
    /// - Returns: Whether it left the chain.
    private final func stepAside(for following: Following, _ trampoline: Trampoline.Reference) -> Bool {
        let inner = following.inner
        var backoff = Backoff()
        while inner !== self {
            let marks = lock()
            guard marks & (Mark.resolved | Mark.cancelled | Mark.delivering) == 0, let waiter = head, last == nil,
                waiter.isInterested, waiter !== inner
            else {
                unlock(marks)
                return false
            }
            if let theirs = waiter.tryLock() {
                // Only Deferreds are transparent.
                guard theirs & (Mark.transparent | Mark.resolved) == Mark.transparent else {
                    waiter.unlock(theirs)
                    unlock(marks)
                    return false
                }
                if let inners = inner.tryLock() {
                    guard inners & (Mark.resolved | Mark.forwarded) == 0 else {
                        inner.unlock(inners)
                        waiter.unlock(theirs)
                        unlock(marks)
                        return false
                    }
                    unlink(waiter)
                    let linked = inner.link(waiter, inners)
                    step = following.step
                    forward = inner
                    inner.unlock(linked | Mark.looked)
                    waiter.unlock(theirs)
                    unlock((marks & ~Mark.running) | Mark.forwarded)
                    if linked != inners { Trampoline.deliver(inner, trampoline) }
                    _ = unsafeDowncast(waiter, to: DeferredCore.self).failsAsCycle(by: inner, trampoline)
                    return true
                }
                waiter.unlock(theirs)
            }
            unlock(marks)
            withExtendedLifetime(waiter) {}
            backoff.pause()
        }
        return false
    }

    /// Waits for the Deferred for which it stepped aside.
    @usableFromInline
    final func stepBack() {
        let marks = lock()
        guard marks & Mark.forwarded != 0, let inner = forward, let step else { return unlock(marks) }
        forward = nil
        self.step = nil
        unlock((marks & ~Mark.forwarded) | Mark.running)
        Trampoline.enter { wait(for: Following(inner, isTransparent: true, step), wasCancelled: false, $0) }
    }

    // MARK: Responsibility for failures

    /// Removes a consumer that will no longer wait for this Deferred.
    @usableFromInline
    final func loseConsumer(_ trampoline: Trampoline.Reference) {
        let marks = lock()
        let isUnwanted = marks & Mark.resolved == 0 && interest == 0
        unlock(marks | Mark.looked)
        if isUnwanted { abandon(trampoline) }
    }

    /// Takes responsibility for a failure.
    @usableFromInline
    final func look() {
        unlock(lock() | Mark.looked)
    }

    // MARK: Cycles

    @usableFromInline
    @discardableResult
    final func failWithCycle(unless barrier: UInt32, _ trampoline: Trampoline.Reference) -> Bool {
        if fail(with: CycleError(), unless: barrier, trampoline) { return true }
        precondition(marks & barrier != 0, "a Deferred waits for itself and its Failure cannot hold a CycleError")
        return false
    }

    /// Fails if the Deferred that it now waits for waits for this one.
    private final func failsAsCycle(by inner: DeferredCore, _ trampoline: Trampoline.Reference) -> Bool {
        guard inner.waits(for: self) else { return false }
        if case .gone = leave(unlinking: true) { return true }
        failWithCycle(unless: Mark.resolved, trampoline)
        return true
    }

    /// Returns whether `target` is this Deferred or one that it waits for, directly or indirectly.
    private final func waits(for target: DeferredCore) -> Bool {
        var seen: Set<ObjectIdentifier> = []
        var open: [DeferredCore] = []
        var next: DeferredCore? = self
        while let current = next {
            if current === target { return true }
            open += current.upstreams().filter { seen.insert(ObjectIdentifier($0)).inserted }
            next = open.popLast()
        }
        return false
    }

    /// The Deferreds that it waits for: one, or the members of a list.
    private final func upstreams() -> [DeferredCore] {
        let marks = lock()
        let isOpen = marks & Mark.resolved == 0
        let gathering = isOpen ? extras?.gathering : nil
        let upstream = isOpen ? upstream.revived() : nil
        unlock(marks)
        return gathering?.upstreams() ?? upstream.map { [$0] } ?? []
    }
}
