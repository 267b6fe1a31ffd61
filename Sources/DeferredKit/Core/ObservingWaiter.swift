// Unchecked: it adds no field.
/// A callback that only looks on.
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

    /// Releases the closure and lets nothing begin any more.
    func finish() {
        preconditionFailure("every kind of observer has its own closure")
    }
}

// Unchecked: `body` is under the lock of the base class.
/// A callback for the outcome.
@usableFromInline
final class OutcomeWaiter: ObservingWaiter, @unchecked Sendable {
    /// Runs the callback, or with `arriving` hands the waiter to the executor.
    @usableFromInline
    typealias Body = @Sendable (_ source: DeferredCore, _ waiter: DeferredWaiter, _ arriving: Bool) -> Void

    private var body: Body?

    @usableFromInline
    init(hopping: Bool, _ body: @escaping Body) {
        self.body = body
        super.init(marks: hopping ? Mark.hops : 0)
    }

    override func fire(from source: DeferredCore, _ trampoline: Trampoline.Reference) {
        let marks = lock()
        upstream = nil
        guard marks & Mark.hops != 0 else {
            let body = self.body.take()
            unlock(marks | Mark.resolved)
            body?(source, self, false)
            return
        }
        let body = self.body
        unlock(marks)
        body?(source, self, true)
    }

    override func runScheduled(from source: DeferredCore, _ trampoline: Trampoline.Reference) {
        let marks = lock()
        let body = self.body.take()
        unlock(marks | Mark.resolved)
        body?(source, self, false)
    }

    override func finish() {
        let marks = lock()
        let body = self.body.take()
        unlock(marks | Mark.resolved)
        withExtendedLifetime(body) {}
    }
}

// Unchecked: `body` and `backlog` are under the lock of the base class.
/// A callback for progress.
final class ProgressWaiter: ObservingWaiter, @unchecked Sendable {
    /// Gives a job to an executor.
    typealias Submit = @Sendable (@escaping @Sendable () -> Void) -> Void

    private var body: (@Sendable (ProgressUpdate) -> Void)?
    private let submit: Submit?
    /// What the executor has not run yet. As many wait as in the Deferred itself; then the newest replaces the last.
    private var backlog: [ProgressUpdate] = []

    init(submit: Submit?, _ body: @escaping @Sendable (ProgressUpdate) -> Void) {
        self.body = body
        self.submit = submit
        super.init(marks: Mark.followsProgress)
    }

    override func fire(from source: DeferredCore, _ trampoline: Trampoline.Reference) {
        finish()
    }

    override func progressed(
        from source: DeferredCore,
        _ update: ProgressUpdate,
        _ trampoline: Trampoline.Reference
    ) {
        let marks = lock()
        let body = self.body
        guard body != nil, submit != nil else {
            unlock(marks)
            body?(update)
            return
        }
        if backlog.count >= DeferredCore.progressBacklog { backlog.removeLast() }
        backlog.append(update)
        unlock(marks | Mark.scheduled)
        if marks & Mark.scheduled == 0 { submit?({ self.drain(from: source) }) }
    }

    private func drain(from source: DeferredCore) {
        while true {
            let marks = lock()
            guard let body, !backlog.isEmpty, source.marks & Mark.resolved == 0 else {
                backlog = []
                return unlock(marks & ~Mark.scheduled)
            }
            let update = backlog.removeFirst()
            unlock(marks)
            body(update)
        }
    }

    override func finish() {
        let marks = lock()
        upstream = nil
        let body = self.body.take()
        unlock(marks | Mark.resolved)
        withExtendedLifetime(body) {}
    }
}
