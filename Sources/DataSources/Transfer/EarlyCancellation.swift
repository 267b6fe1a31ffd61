import Synchronization

/// Cancels something that may not be there yet when it is to be cancelled: a task or a timer whose maker is still at work.
final class EarlyCancellation<Subject: Sendable>: Sendable {
    private let state = Mutex<(subject: Subject?, isCancelled: Bool)>((nil, false))
    private let perform: @Sendable (Subject) -> Void

    init(_ perform: @escaping @Sendable (Subject) -> Void) {
        self.perform = perform
    }

    /// Says what to cancel. That happens at once where ``cancel()`` was called before.
    func set(_ subject: Subject) {
        let isCancelled = state.withLock { state in
            state.subject = subject
            return state.isCancelled
        }
        if isCancelled { perform(subject) }
    }

    func cancel() {
        let subject = state.withLock { state in
            state.isCancelled = true
            return state.subject
        }
        if let subject { perform(subject) }
    }
}
