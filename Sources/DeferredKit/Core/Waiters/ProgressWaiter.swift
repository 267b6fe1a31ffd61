// Unchecked: `body`, `backlog` and `turns` are under the lock of the base class.
/// A callback for progress.
final class ProgressWaiter: DeferredWaiter, @unchecked Sendable {
    /// Gives a job to an executor.
    typealias Submit = @Sendable (@escaping @Sendable () -> Void) -> Void

    private var body: (@Sendable (ProgressUpdate) -> Void)?
    private let submit: Submit?
    /// Updates that wait for their jobs on the executor. The Deferred's limit applies; then the newest replaces the last.
    private var backlog: [ProgressUpdate] = []
    /// How many of them wait for the running call instead, because their jobs have begun.
    private var turns = 0

    init(submit: Submit?, _ body: @escaping @Sendable (ProgressUpdate) -> Void) {
        self.body = body
        self.submit = submit
        super.init(marks: Mark.followsProgress, isInterested: false)
    }

    override func fire(from source: DeferredCore, _ trampoline: Trampoline.Reference) -> Next {
        orphan()
        return .done
    }

    override func progressed(from source: DeferredCore, _ update: ProgressUpdate, _ trampoline: Trampoline.Reference) {
        let marks = lock()
        let body = self.body
        guard body != nil, let submit else {
            unlock(marks)
            body?(update)
            return
        }
        let isFull = backlog.count >= DeferredCore.progressBacklog
        if isFull { backlog.removeLast() }
        backlog.append(update)
        unlock(marks)
        if !isFull { submit(ScheduledWaiter(self, from: source).run) }
    }

    override func runScheduled(from source: DeferredCore, _ trampoline: Trampoline.Reference) -> Next {
        let marks = lock()
        turns += 1
        unlock(marks | Mark.running)
        // Calls do not overlap: the running one leaves its thread to the next.
        guard marks & Mark.running == 0 else { return .done }
        while true {
            let marks = lock()
            guard let body, turns > 0, source.marks & Mark.resolved == 0 else {
                unlock(marks & ~Mark.running)
                return .done
            }
            turns -= 1
            let update = backlog.removeFirst()
            unlock(marks)
            body(update)
        }
    }

    /// Drops one update with its job.
    override func dropScheduled() {
        let marks = lock()
        backlog.removeFirst()
        unlock(marks)
    }

    override func orphan() {
        let marks = lock()
        let body = self.body.take()
        unlock(marks | Mark.resolved)
        withExtendedLifetime(body) {}
    }
}
