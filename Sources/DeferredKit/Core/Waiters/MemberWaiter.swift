// Unchecked: the references are under the lock of the base class.
/// A list among the waiters of one of its members.
final class MemberWaiter: DeferredWaiter, @unchecked Sendable {
    private let index: Int
    private var list: (gathering: Gathering, target: DeferredCore)?

    init(_ index: Int, _ gathering: Gathering, _ target: DeferredCore) {
        self.index = index
        list = (gathering, target)
        super.init(marks: Mark.followsProgress, isInterested: true)
    }

    override func fire(from source: DeferredCore, _ trampoline: Trampoline.Reference) -> Next {
        let marks = lock()
        let list = self.list.take()
        unlock(marks | Mark.resolved)
        if let list { list.gathering.arrival(list.gathering, source, list.target, index, trampoline) }
        return .done
    }

    override func progressed(from source: DeferredCore, _ update: ProgressUpdate, _ trampoline: Trampoline.Reference) {
        let marks = lock()
        let list = self.list
        unlock(marks)
        if let list { list.gathering.progressed(index, update, list.target) }
    }

    override func orphan() {
        let marks = lock()
        let list = self.list.take()
        unlock(marks)
        if let target = list?.target, target.marks & (Mark.cancelled | Mark.resolved) == Mark.cancelled {
            Trampoline.enter { _ = target.fail(with: CancellationError(), unless: Mark.resolved, $0) }
        }
        withExtendedLifetime(list) {}
    }
}
