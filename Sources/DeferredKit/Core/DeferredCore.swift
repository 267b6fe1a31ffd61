// Unchecked: Soundness.swift lists the lock of each field.
/// The part of a Deferred that does not depend on its types: its callbacks, its upstream and its cancellation.
///
/// This class is public only because ``Deferred`` inherits from it.
///
/// States: pending, committed (`resolve(with:)` or a returned Deferred decides), resolved; the last is terminal. A
/// Deferred is also either being delivered or not: while it is, one thread runs its callbacks, and other threads leave
/// added callbacks to that thread. A second outcome is refused; cancelling a resolved Deferred has no effect.
public class DeferredCore: DeferredWaiter, @unchecked Sendable {
    /// Computes the outcome from the upstream's, or returns the Deferred to wait for next. With `arriving`, a step with
    /// an executor goes there, unless there is no closure to run.
    @usableFromInline
    typealias Step =
        @Sendable (
            _ source: DeferredCore, _ target: DeferredCore, _ trampoline: Trampoline.Reference, _ arriving: Bool
        ) -> Next

    /// The list of waiters, in the order they were added.
    @usableFromInline @exclusivity(unchecked) final var head: DeferredWaiter?
    /// The last waiter of the list, if the list has more than one.
    @exclusivity(unchecked) final var last: DeferredWaiter?
    /// The number of waiters in the list that want the outcome; at zero, it is cancelled.
    @exclusivity(unchecked) final var interest: Int32 = 0
    /// The number of waiters in the list that want progress.
    @exclusivity(unchecked) final var followers: Int32 = 0
    @exclusivity(unchecked) final var step: Step?
    @usableFromInline @exclusivity(unchecked) final var extras: DeferredExtras?
    /// The Deferred to wait for again if this one is used after all; see `stepAside`.
    @exclusivity(unchecked) final var forward: DeferredCore?

    @usableFromInline
    init(marks: UInt32, isInterested: Bool = false, step: Step?) {
        self.step = step
        super.init(marks: marks | Mark.followsProgress, isInterested: isInterested)
    }

    deinit {
        // No references remain, and a thread that reaches this object through a waiter gets nil.
        if head != nil { abandonWaiters() }
    }

    /// Resolves with a failure, if the type can hold it and no mark of `barrier` is set.
    @discardableResult
    func fail(with error: any Error, unless barrier: UInt32, _ trampoline: Trampoline.Reference) -> Bool {
        preconditionFailure("only Deferred is ever made")
    }

    /// The failure it resolved with.
    var failure: (any Error)? { nil }

    // MARK: As a waiter

    override final func leaveList(_ marks: UInt32) -> UInt32 {
        guard marks & Mark.resolved == 0 else { return marks }
        return marks | (marks & Mark.hops != 0 ? Mark.scheduled : Mark.running)
    }

    override final func fire(from source: DeferredCore, _ trampoline: Trampoline.Reference) -> Next {
        if marks & Mark.running != 0 {
            let step = self.step.take()
            guard marks & Mark.resolved == 0, let step else { return .done }
            return step(source, self, trampoline, false)
        }
        let marks = lock()
        let step = marks & Mark.resolved == 0 ? self.step : self.step.take()
        unlock(marks)
        guard marks & Mark.resolved == 0, let step else { return .done }
        let next = step(source, self, trampoline, true)
        // The step stays for the executor, or is released if there was nothing to run there.
        if case .scheduled = next { return next }
        releaseStep()
        return next
    }

    override final func runScheduled(from source: DeferredCore, _ trampoline: Trampoline.Reference) -> Next {
        let marks = lock()
        let step = self.step.take()
        unlock((marks & ~Mark.scheduled) | (marks & Mark.resolved == 0 ? Mark.running : 0))
        guard let step, marks & Mark.resolved == 0 else { return .done }
        return step(source, self, trampoline, false)
    }

    override final func dropScheduled() {
        let marks = lock()
        let isOpen = marks & (Mark.scheduled | Mark.resolved) == Mark.scheduled
        unlock(isOpen ? (marks & ~Mark.scheduled) | Mark.orphaned : marks)
        if isOpen { orphan() }
    }

    override final func progressed(
        from source: DeferredCore,
        _ update: ProgressUpdate,
        _ trampoline: Trampoline.Reference
    ) {
        report(update)
    }

    override final func orphan() {
        let marks = releaseStep()
        guard marks & Mark.resolved == 0 else { return }
        var isOpen = true
        if marks & Mark.cancelled != 0 {
            Trampoline.enter { isOpen = !fail(with: CancellationError(), unless: Mark.resolved, $0) }
        }
        // A reference to this one must not make others wait forever.
        if isOpen { abandonWaiters() }
    }

    @discardableResult
    final func releaseStep() -> UInt32 {
        let marks = lock()
        let step = self.step.take()
        unlock(marks)
        withExtendedLifetime(step) {}
        return marks
    }
}
