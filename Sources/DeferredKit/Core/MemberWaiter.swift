// Unchecked: `isCounted` is under the list's lock, the references under that of the base class.
/// A list's place among the waiters of one of its members.
final class MemberWaiter: DeferredWaiter, @unchecked Sendable {
    private let index: Int
    /// Whether its outcome was taken in; under the list's lock.
    var isCounted = false
    private var gathering: Gathering?
    private var target: DeferredCore?

    init(_ index: Int, _ gathering: Gathering, _ target: DeferredCore) {
        self.index = index
        self.gathering = gathering
        self.target = target
        super.init(marks: Mark.interested | Mark.followsProgress)
    }

    override func fire(from source: DeferredCore, _ trampoline: Trampoline.Reference) {
        let marks = lock()
        upstream = nil
        let gathering = self.gathering.take()
        let target = self.target.take()
        unlock(marks | Mark.resolved)
        if let gathering, let target { gathering.arrive(source, target, index, trampoline) }
    }

    override func progressed(
        from source: DeferredCore,
        _ update: ProgressUpdate,
        _ trampoline: Trampoline.Reference
    ) {
        let marks = lock()
        let gathering = self.gathering
        let target = self.target
        unlock(marks)
        if let gathering, let target { gathering.progressed(index, update, target) }
    }

    override func orphan() {
        release()
    }

    /// Lets go of the list.
    func release() {
        let marks = lock()
        let gathering = self.gathering.take()
        let target = self.target.take()
        unlock(marks)
        if let target, target.marks & (Mark.cancelled | Mark.resolved) == Mark.cancelled {
            Trampoline.enter { _ = target.fail(with: CancellationError(), unless: Mark.resolved, $0) }
        }
        withExtendedLifetime(gathering) {}
    }
}
