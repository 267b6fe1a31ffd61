// Unchecked: `body` and `backlog` are under the lock of the base class.
/// A callback for progress.
final class ProgressWaiter: DeferredWaiter, @unchecked Sendable {
    /// Gives a job to an executor.
    typealias Submit = @Sendable (@escaping @Sendable () -> Void) -> Void

    private var body: (@Sendable (ProgressUpdate) -> Void)?
    private let submit: Submit?
    /// Updates that the executor has not run yet. The Deferred's limit applies; then the newest replaces the last.
    private var backlog: [ProgressUpdate] = []

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

    override func orphan() {
        let marks = lock()
        let body = self.body.take()
        unlock(marks | Mark.resolved)
        withExtendedLifetime(body) {}
    }
}
