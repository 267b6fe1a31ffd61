extension DeferredCore {
    /// A Deferred to cancel, and the nearest one on the way there that can fail without a producer.
    struct Abandoned {
        let core: DeferredCore
        let failable: DeferredCore?
    }

    private enum Verdict {
        /// It is resolved, or its `onCancel` is being called, and the caller continues from there.
        case nothing
        /// It left the chain in favour of the Deferred it would wait for.
        case aside
        /// It has no upstream: its promise's `onCancel` is called once.
        case top(isOrphan: Bool)
        /// Its closure runs or waits for its executor, or is about to.
        case running
        /// Other consumers still want its upstream's outcome.
        case stays
        case onward(DeferredCore)
        case list(Gathering)
    }

    /// Cancels this Deferred and all of its upstream without an interested consumer.
    @usableFromInline
    final func abandon() {
        Trampoline.enter { abandon($0) }
    }

    final func abandon(_ trampoline: Trampoline.Reference) {
        var work = [Abandoned(core: self, failable: nil)]
        var staying: [Abandoned] = []
        var path = WayUp()
        while let next = work.popLast() {
            guard path.passes(next.core) else { continue }
            next.core.abandon(below: next.failable, &work, &staying, &path, trampoline)
        }
        // Checked last: a Deferred with other consumers on one way up may have lost them on another.
        for item in staying where item.core.waitsWithOthers() { item.failable?.failDetached(trampoline) }
    }

    /// Returns whether its upstream also has other consumers, or will never resolve.
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
        _ path: inout WayUp,
        _ trampoline: Trampoline.Reference
    ) {
        let failable = marks & Mark.holdsCancellation != 0 ? self : lower
        // Released only after unlocking.
        var onCancel: (@Sendable (DeferredCore) -> Void)?
        var step: Step?
        let verdict = withUpstream { marks, upstream, theirs -> Verdict in
            guard marks & Mark.resolved == 0 else { return .nothing }
            guard marks & Mark.forwarded == 0 else { return .aside }
            marks |= Mark.cancelled
            if let gathering = extras?.gathering { return .list(gathering) }
            if marks & (Mark.running | Mark.scheduled) != 0 {
                if marks & Mark.scheduled != 0, failable === self { step = self.step.take() }
                return .running
            }
            guard let upstream else {
                guard marks & Mark.asking == 0 else { return .nothing }
                onCancel = extras?.onCancel
                extras?.onCancel = nil
                if onCancel != nil { marks |= Mark.asking }
                return .top(isOrphan: marks & Mark.orphaned != 0)
            }
            guard theirs & Mark.resolved == 0 else { return .running }
            upstream.loseInterest(of: self)
            return upstream.interest == 0 ? .onward(upstream) : .stays
        }
        withExtendedLifetime(step) {}

        switch verdict {
        case .nothing: break
        case .aside:
            stepBack()
            work.append(Abandoned(core: self, failable: lower))
        case .onward(let upstream): work.append(Abandoned(core: upstream, failable: failable))
        case .stays: staying.append(Abandoned(core: self, failable: failable))
        case .running: if failable === self { failDetached(trampoline) }
        case .list(let gathering):
            guard path.spreads(from: self) else { return }
            gathering.withdraw(below: failable, &work)
            staying.append(Abandoned(core: self, failable: failable))
        case .top(let isOrphan):
            if let onCancel {
                onCancel(self)
                unlock(lock() & ~Mark.asking)
            }
            if isOrphan {
                failable?.failDetached(trampoline)
            } else if marks & Mark.erased != 0 {
                fail(with: CancellationError(), unless: Mark.resolved | Mark.committed, trampoline)
            }
        }
    }

    /// Fails at once and stops waiting.
    private final func failDetached(_ trampoline: Trampoline.Reference) {
        if case .gone = leave(unlinking: true) {} else { releaseStep() }
        fail(with: CancellationError(), unless: Mark.resolved, trampoline)
    }

    /// Fails with an error other than cancellation and withdraws from the upstream.
    final func failAndWithdraw(_ error: any Error) {
        Trampoline.enter { trampoline in
            let leave = leave(unlinking: true)
            if case .gone = leave {} else { releaseStep() }
            fail(with: error, unless: Mark.resolved, trampoline)
            if case .unwanted(let upstream) = leave { upstream.abandon(trampoline) }
        }
    }
}
