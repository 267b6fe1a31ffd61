// Unchecked: every field is under the lock of the base class, but `due` and `nextDue`, the delivering thread's own.
/// The part of a Deferred that does not depend on its types: its callbacks, its upstream and its cancellation.
///
/// It is public because ``Deferred`` inherits from it, and of no use by itself.
///
/// States: pending, committed (`resolve(with:)` or a returned Deferred decides), resolved; the last is terminal.
/// Besides, a Deferred is being delivered or not: while it is, one thread runs its callbacks and every other leaves
/// what it adds to that thread. A second outcome is refused, cancelling a resolved Deferred does nothing.
public class DeferredCore: DeferredWaiter, @unchecked Sendable {
    /// Computes the outcome from the upstream's. With `arriving` a step that has an executor goes there and answers
    /// true; otherwise it runs.
    @usableFromInline
    typealias Step =
        @Sendable (
            _ source: DeferredCore, _ target: DeferredCore, _ trampoline: Trampoline.Reference, _ arriving: Bool
        ) -> Bool

    // The list of waiters, in the order they were added. It owns one reference to each.
    @usableFromInline @exclusivity(unchecked) final var head: Unmanaged<DeferredWaiter>?
    @exclusivity(unchecked) final var tail: Unmanaged<DeferredWaiter>?
    /// The waiters that are being run; it belongs to the thread that delivers.
    @exclusivity(unchecked) final var due: Unmanaged<DeferredWaiter>?
    /// The next Deferred in a trampoline.
    @exclusivity(unchecked) final var nextDue: Unmanaged<DeferredCore>?
    @usableFromInline @exclusivity(unchecked) final var step: Step?
    @usableFromInline @exclusivity(unchecked) final var extras: DeferredExtras?

    @inlinable
    init(marks: UInt32, step: Step?) {
        self.step = step
        super.init(marks: marks | Mark.deferred)
    }

    deinit {
        if head != nil { abandonWaiters() }
    }

    /// Resolves with a failure, if the type can hold it and no mark of `barrier` is set.
    @discardableResult
    func fail(with error: any Error, unless barrier: UInt32, _ trampoline: Trampoline.Reference) -> Bool {
        preconditionFailure("only Deferred is ever made")
    }

    /// The failure that it resolved with.
    var failure: (any Error)? { nil }

    // MARK: As a waiter

    override final func fire(from source: DeferredCore, _ trampoline: Trampoline.Reference) {
        // Nobody else touches `step` now, unless it is scheduled: whoever cancels sees that the upstream has resolved.
        let marks = self.marks
        if marks & Mark.resolved != 0 {
            step = nil
        } else if marks & Mark.hops != 0 {
            guard let step else { return }
            if !step(source, self, trampoline, true) { self.step = nil }
        } else if let step = step.take() {
            _ = step(source, self, trampoline, false)
        }
    }

    /// Leaves the step in place for the executor; nil when it is too late.
    @usableFromInline
    final func schedule(from source: DeferredCore) -> ScheduledWaiter? {
        let marks = lock()
        guard marks & Mark.resolved == 0 else {
            unlock(marks)
            return nil
        }
        unlock(marks | Mark.scheduled)
        return ScheduledWaiter(self, from: source)
    }

    override final func runScheduled(from source: DeferredCore, _ trampoline: Trampoline.Reference) {
        let marks = lock()
        let step = self.step.take()
        unlock(marks & ~Mark.scheduled)
        guard let step, marks & Mark.resolved == 0 else { return }
        _ = step(source, self, trampoline, false)
    }

    override final func progressed(
        from source: DeferredCore,
        _ update: ProgressUpdate,
        _ trampoline: Trampoline.Reference
    ) {
        report(update)
    }

    override final func orphan() {
        let marks = lock()
        let step = self.step.take()
        unlock(marks)
        withExtendedLifetime(step) {}
        if marks & Mark.cancelled != 0, marks & Mark.resolved == 0 {
            Trampoline.enter { _ = fail(with: CancellationError(), unless: Mark.resolved, $0) }
        }
    }
}
