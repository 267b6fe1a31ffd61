extension DeferredCore {
    /// A Deferred to cancel, and the nearest one on the way there that can fail by itself.
    struct Abandoned {
        let core: DeferredCore
        let failable: DeferredCore?
    }

    private enum Verdict {
        case resolved
        /// There is nobody further up: its promise is asked, once.
        case top(isFirst: Bool, isOrphan: Bool)
        /// Its closure runs or waits for its executor.
        case running
        /// Others want what it waits for.
        case stays
        case onward(DeferredCore)
        case list(Gathering)
    }

    /// Cancels this Deferred and whatever upstream is left without an interested consumer.
    @usableFromInline
    final func abandon() {
        Trampoline.enter { abandon($0) }
    }

    final func abandon(_ trampoline: Trampoline.Reference) {
        var work = [Abandoned(core: self, failable: nil)]
        var staying: [Abandoned] = []
        while let next = work.popLast() {
            next.core.abandon(below: next.failable, &work, &staying, trampoline)
        }
        // Only now, as what one way up left to others may have been left by another way up, too.
        for item in staying where item.core.waitsWithOthers() { item.failable?.failDetached(trampoline) }
    }

    /// Whether it waits for what others want as well, or for what will never resolve.
    private final func waitsWithOthers() -> Bool {
        let (isSo, gathering) = withUpstream { marks, upstream, theirs -> (Bool, Gathering?) in
            guard marks & Mark.resolved == 0 else { return (false, nil) }
            if let gathering = extras?.gathering { return (false, gathering) }
            guard let upstream else { return (marks & Mark.orphaned != 0, nil) }
            return (theirs & Mark.resolved == 0 && upstream.interest > 0, nil)
        }
        return gathering?.waitsWithOthers ?? isSo
    }

    private final func abandon(
        below lower: DeferredCore?,
        _ work: inout [Abandoned],
        _ staying: inout [Abandoned],
        _ trampoline: Trampoline.Reference
    ) {
        let failable = marks & Mark.holdsCancellation != 0 ? self : lower
        // What goes is released after the locks.
        var onCancel: (@Sendable (DeferredCore) -> Void)?
        var step: Step?
        let verdict = withUpstream { marks, upstream, theirs -> Verdict in
            guard marks & Mark.resolved == 0 else { return .resolved }
            let isFirst = marks & Mark.cancelled == 0
            marks |= Mark.cancelled
            if let gathering = extras?.gathering { return .list(gathering) }
            guard let upstream else {
                if marks & Mark.scheduled != 0, failable === self { step = self.step.take() }
                onCancel = extras?.onCancel
                extras?.onCancel = nil
                return .top(isFirst: isFirst, isOrphan: marks & Mark.orphaned != 0)
            }
            guard theirs & Mark.resolved == 0 else {
                if marks & Mark.scheduled != 0, failable === self { step = self.step.take() }
                return .running
            }
            if marks & Mark.interested != 0 {
                marks &= ~Mark.interested
                upstream.interest -= 1
            }
            return upstream.interest == 0 ? .onward(upstream) : .stays
        }
        withExtendedLifetime(step) {}

        switch verdict {
        case .resolved: break
        case .onward(let upstream): work.append(Abandoned(core: upstream, failable: failable))
        case .stays: staying.append(Abandoned(core: self, failable: failable))
        case .running: if failable === self { failDetached(trampoline) }
        case .list(let gathering):
            gathering.withdraw(below: failable, &work)
            staying.append(Abandoned(core: self, failable: failable))
        case .top(let isFirst, let isOrphan):
            if isFirst { onCancel?(self) }
            if isOrphan {
                failable?.failDetached(trampoline)
            } else if marks & Mark.erased != 0 {
                fail(with: CancellationError(), unless: Mark.resolved | Mark.committed, trampoline)
            }
        }
    }

    /// Fails at once and waits for nothing any more.
    private final func failDetached(_ trampoline: Trampoline.Reference) {
        if case .gone = leave(unlinking: true) {} else { releaseStep() }
        fail(with: CancellationError(), unless: Mark.resolved, trampoline)
    }

    /// Fails with what is not cancellation and withdraws from the upstream.
    final func failAndWithdraw(_ error: any Error) {
        Trampoline.enter { trampoline in
            let leave = leave(unlinking: true)
            if case .gone = leave {} else { releaseStep() }
            fail(with: error, unless: Mark.resolved, trampoline)
            if case .unwanted(let upstream) = leave { upstream.abandon(trampoline) }
        }
    }

    private final func releaseStep() {
        let marks = lock()
        let step = self.step.take()
        unlock(marks)
        withExtendedLifetime(step) {}
    }
}
