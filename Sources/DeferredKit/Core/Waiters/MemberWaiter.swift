// Unchecked: the references are under the lock of the base class.
/// A list among the waiters of one of its members.
final class MemberWaiter: DeferredWaiter, @unchecked Sendable {
    private let index: Int
    private var gathering: Gathering?
    private var target: DeferredCore?

    init(_ index: Int, _ gathering: Gathering, _ target: DeferredCore) {
        self.index = index
        self.gathering = gathering
        self.target = target
        super.init(marks: Mark.followsProgress, isInterested: true)
    }

    override func fire(from source: DeferredCore, _ trampoline: Trampoline.Reference) -> Next {
        let marks = lock()
        let gathering = self.gathering.take()
        let target = self.target.take()
        unlock(marks | Mark.resolved)
        if let gathering, let target { gathering.arrive(source, target, index, trampoline) }
        return .done
    }

    override func progressed(from source: DeferredCore, _ update: ProgressUpdate, _ trampoline: Trampoline.Reference) {
        let marks = lock()
        let gathering = self.gathering
        let target = self.target
        unlock(marks)
        if let gathering, let target { gathering.progressed(index, update, target) }
    }

    override func orphan() {
        release()
    }

    /// Releases the list.
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
