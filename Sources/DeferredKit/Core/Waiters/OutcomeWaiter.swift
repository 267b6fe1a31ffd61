// Unchecked: `body` is under the lock of the base class.
/// A callback for the outcome.
@usableFromInline
final class OutcomeWaiter: ObservingWaiter, @unchecked Sendable {
    /// Runs the callback, or with `arriving` hands the waiter to the executor.
    @usableFromInline
    typealias Body = @Sendable (_ source: DeferredCore, _ waiter: DeferredWaiter, _ arriving: Bool) -> Void

    private var body: Body?

    @usableFromInline
    init(hopping: Bool, isInterested: Bool = false, _ body: @escaping Body) {
        self.body = body
        super.init(marks: hopping ? Mark.hops : 0, isInterested: isInterested)
    }

    override func fire(from source: DeferredCore, _ trampoline: Trampoline.Reference) -> Next {
        guard constantMarks & Mark.hops != 0 else { return runScheduled(from: source, trampoline) }
        let marks = lock()
        let body = self.body
        unlock(marks)
        body?(source, self, true)
        return .scheduled
    }

    override func runScheduled(from source: DeferredCore, _ trampoline: Trampoline.Reference) -> Next {
        let marks = lock()
        let body = self.body.take()
        unlock(marks | Mark.resolved)
        body?(source, self, false)
        return .done
    }

    override func dropScheduled() {
        finish()
    }

    override func finish() {
        let marks = lock()
        let body = self.body.take()
        unlock(marks | Mark.resolved)
        withExtendedLifetime(body) {}
    }
}

// Unchecked: it adds no field.
/// A callback that only observes.
@usableFromInline
class ObservingWaiter: DeferredWaiter, @unchecked Sendable {
    /// Stops waiting and releases the closure.
    final func retire() {
        _ = leave(unlinking: true)
        finish()
    }

    override final func orphan() {
        finish()
    }

    /// Releases the closure and prevents it from starting.
    func finish() {
        preconditionFailure("every kind of observer has its own closure")
    }
}
