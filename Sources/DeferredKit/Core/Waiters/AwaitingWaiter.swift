// Unchecked: `continuation` is set before other threads know the waiter, and resumed by the thread that ends the wait.
/// An awaiting task.
final class AwaitingWaiter: DeferredWaiter, @unchecked Sendable {
    private var continuation: UnsafeContinuation<Bool, Never>?
    private let canThrow: Bool

    init(throwing canThrow: Bool) {
        self.canThrow = canThrow
        super.init(marks: 0, isInterested: true)
    }

    func start(_ continuation: UnsafeContinuation<Bool, Never>, waitingFor core: DeferredCore) {
        self.continuation = continuation
        core.append(self, leaving: Mark.looked)
        let marks = lock()
        unlock(marks | Mark.committed)
        if marks & Mark.cancelled != 0 { withdraw() }
    }

    func cancel() {
        let marks = lock()
        unlock(marks | Mark.cancelled)
        // Until `start` has finished, there is no upstream to withdraw from; `start` checks the mark itself.
        if marks & Mark.committed != 0 { withdraw() }
    }

    private func withdraw() {
        let leave = leave(unlinking: canThrow)
        if case .gone = leave { return }
        if canThrow { continuation?.resume(returning: false) }
        if case .unwanted(let upstream) = leave { upstream.abandon() }
    }

    override func fire(from source: DeferredCore, _ trampoline: Trampoline.Reference) -> Next {
        unlock(lock() | Mark.resolved)
        continuation?.resume(returning: true)
        return .done
    }
}

extension DeferredCore {
    /// Waits for the outcome; returns false if the task was cancelled and `Failure` can hold a `CancellationError`.
    @usableFromInline
    final func arrival() async -> Bool {
        let waiter = AwaitingWaiter(throwing: marks & Mark.holdsCancellation != 0)
        return await withTaskCancellationHandler {
            await withUnsafeContinuation { waiter.start($0, waitingFor: self) }
        } onCancel: {
            waiter.cancel()
        }
    }
}
