extension DeferredCore {
    /// Waits for `inner`, whose outcome `step` passes on.
    ///
    /// - Parameters:
    ///   - commits: The caller is a promise, which must not be committed yet and is from now on.
    ///   - isTransparent: Both have the same type and the step changes nothing.
    /// - Returns: Whether this one was still open.
    @usableFromInline
    @discardableResult
    final func pause(
        on inner: DeferredCore,
        commits: Bool,
        isTransparent: Bool,
        _ trampoline: Trampoline.Reference,
        _ step: @escaping Step
    ) -> Bool {
        let barrier = commits ? Mark.resolved | Mark.committed : Mark.resolved
        let added = (commits ? Mark.committed : 0) | (isTransparent ? Mark.transparent : 0)
        if inner === self { return failWithCycle(unless: barrier, trampoline) }
        var rounds = 0
        while true {
            let marks = lock()
            guard marks & barrier == 0 else {
                unlock(marks)
                if !commits { inner.loseConsumer(trampoline) }
                return false
            }
            guard let theirs = inner.tryLock() else {
                unlock(marks)
                give(way: &rounds)
                continue
            }
            let onCancel = commits ? extras?.onCancel : nil
            if commits { extras?.onCancel = nil }
            if theirs & (Mark.resolved | Mark.delivering) == Mark.resolved {
                inner.unlock(theirs | Mark.looked)
                unlock(marks | added)
                withExtendedLifetime(onCancel) {}
                _ = step(inner, self, trampoline, false)
                return true
            }
            wait(for: inner, marks | added, theirs, commits: commits, step, trampoline)
            withExtendedLifetime(onCancel) {}
            return true
        }
    }

    /// The part of pausing that begins with both locked and unlocks them.
    private final func wait(
        for inner: DeferredCore,
        _ marks: UInt32,
        _ theirs: UInt32,
        commits: Bool,
        _ step: @escaping Step,
        _ trampoline: Trampoline.Reference
    ) {
        upstream = Unmanaged.passUnretained(inner)
        self.step = step
        inner.link(Unmanaged.passRetained(self as DeferredWaiter), to: inner.tail)
        // A link whose cancellation was left to a producer passes it on to what its closure returned.
        let passesOn = marks & Mark.cancelled != 0 && !commits
        if theirs & Mark.resolved == 0, !passesOn { inner.interest += 1 }
        let update = theirs & Mark.resolved == 0 ? inner.extras?.latest : nil
        let isAwaited = head != nil
        inner.unlock(theirs | Mark.looked)
        let interested = passesOn ? 0 : Mark.interested
        unlock((marks & ~Mark.interested) | Mark.paused | Mark.followsProgress | interested)

        // First of all, so that nothing else meets a cycle.
        if isAwaited, inner.waits(for: self) {
            if case .gone = leave(unlinking: true) { return }
            failWithCycle(unless: Mark.resolved, trampoline)
            return
        }
        if isAwaited, !commits { trampoline.pointee.notePause(on: inner) }
        if passesOn { inner.loseConsumer(trampoline) }
        if let update { report(update) }
    }

    /// Somebody who would have waited for this one no longer does.
    @usableFromInline
    final func loseConsumer(_ trampoline: Trampoline.Reference) {
        let marks = lock()
        let isUnwanted = marks & Mark.resolved == 0 && interest == 0
        unlock(marks | Mark.looked)
        if isUnwanted { abandon(trampoline) }
    }

    /// Takes over the responsibility for a failure.
    @usableFromInline
    final func look() {
        unlock(lock() | Mark.looked)
    }

    @usableFromInline
    @discardableResult
    final func failWithCycle(unless barrier: UInt32, _ trampoline: Trampoline.Reference) -> Bool {
        if fail(with: CycleError(), unless: barrier, trampoline) { return true }
        precondition(marks & barrier != 0, "a Deferred waits for itself and its Failure cannot hold a CycleError")
        return false
    }

    /// Whether `target` is this Deferred or one that it waits for, directly or not.
    private final func waits(for target: DeferredCore) -> Bool {
        var current = self
        while current !== target {
            switch current.upstreams() {
            case .none: return false
            case .one(let upstream): current = upstream
            case .many(let upstreams): return DeferredCore.search(upstreams, for: target)
            }
        }
        return true
    }

    private static func search(_ start: [DeferredCore], for target: DeferredCore) -> Bool {
        var open = start
        var seen = Set(start.map(ObjectIdentifier.init))
        while let current = open.popLast() {
            if current === target { return true }
            switch current.upstreams() {
            case .none: break
            case .one(let upstream): if seen.insert(ObjectIdentifier(upstream)).inserted { open.append(upstream) }
            case .many(let upstreams):
                open += upstreams.filter { seen.insert(ObjectIdentifier($0)).inserted }
            }
        }
        return false
    }

    private enum Upstreams {
        case none
        case one(DeferredCore)
        case many([DeferredCore])
    }

    private final func upstreams() -> Upstreams {
        let marks = lock()
        let gathering = marks & Mark.resolved == 0 ? extras?.gathering : nil
        let upstream = marks & Mark.resolved == 0 ? upstream?.revived() : nil
        unlock(marks)
        if let gathering { return .many(gathering.upstreams()) }
        return upstream.map(Upstreams.one) ?? .none
    }

    /// Takes a waiter out of the chain that has just run and only passes on an outcome now, if nobody else knows it;
    /// otherwise a loop of `flatMap`s would grow with every round.
    @inline(__always)
    static func shorten(_ waiter: inout DeferredWaiter, _ trampoline: Trampoline.Reference) {
        if let inner = trampoline.pointee.takePause() { stepOut(&waiter, from: inner.takeRetainedValue()) }
    }

    // `middle` is the only reference to it that may exist here, hence no local of its own type.
    @inline(never)
    private static func stepOut(_ middle: inout DeferredWaiter, from inner: DeferredCore) {
        guard let consumer = unsafeDowncast(middle, to: DeferredCore.self).onlyConsumer() else { return }
        // Whoever finds one of the locks taken leaves the chain as it is; it is merely longer.
        guard let consumerMarks = consumer.tryLock() else { return }
        if let marks = middle.tryLock() {
            if let innerMarks = inner.tryLock() {
                if consumer.upstream?.toOpaque() == Unmanaged.passUnretained(middle).toOpaque(),
                    middle.upstream?.toOpaque() == Unmanaged.passUnretained(inner).toOpaque(),
                    consumerMarks & marks & Mark.interested != 0, marks & Mark.transparent != 0,
                    marks & (Mark.delivering | Mark.cancelled) == 0,
                    (consumerMarks | marks | innerMarks) & Mark.resolved == 0
                {
                    inner.replaceIfUnknown(&middle, by: consumer)
                }
                inner.unlock(innerMarks)
            }
            middle.unlock(marks)
        }
        consumer.unlock(consumerMarks)
    }

    private final func onlyConsumer() -> DeferredWaiter? {
        let marks = lock()
        defer { unlock(marks) }
        guard let head, head.toOpaque() == tail?.toOpaque() else { return nil }
        return head._withUnsafeGuaranteedRef { $0.loneMarks & Mark.deferred != 0 ? $0 : nil }
    }

    /// Puts the only member of a waiter's list in the waiter's place in this one, unless somebody knows the waiter.
    /// Call it with all three locked.
    private final func replaceIfUnknown(_ middle: inout DeferredWaiter, by consumer: DeferredWaiter) {
        // This list has a reference to it. Nobody else can take it out of the list now.
        Unmanaged.passUnretained(middle).release()
        guard isKnownUniquelyReferenced(&middle) else {
            _ = Unmanaged.passRetained(middle)
            return
        }
        consumer.upstream = Unmanaged.passUnretained(self)
        consumer.previous = middle.previous
        consumer.next = middle.next
        // The reference that the waiter's list had to it is now this list's.
        let kept = Unmanaged.passUnretained(consumer)
        if let previous = middle.previous { previous._withUnsafeGuaranteedRef { $0.next = kept } } else { head = kept }
        if let next = middle.next { next._withUnsafeGuaranteedRef { $0.previous = kept } } else { tail = kept }
        middle.upstream = nil
        middle.previous = nil
        middle.next = nil
        middle.interest = 0
        unsafeDowncast(middle, to: DeferredCore.self).head = nil
        unsafeDowncast(middle, to: DeferredCore.self).tail = nil
    }
}
