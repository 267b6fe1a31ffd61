// Unchecked: `body` is under the lock of the base class.
/// A callback for the outcome.
@usableFromInline
final class OutcomeWaiter: DeferredWaiter, @unchecked Sendable {
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
        let body = end()
        body?(source, self, false)
        return .done
    }

    override func dropScheduled() {
        orphan()
    }

    override func orphan() {
        withExtendedLifetime(end()) {}
    }

    /// Prevents the closure from starting and returns it.
    private func end() -> Body? {
        let marks = lock()
        defer { unlock(marks | Mark.resolved) }
        return body.take()
    }
}
