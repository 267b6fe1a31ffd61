import JobModel
import NIOCore
import Synchronization

/// Stops a running transfer from outside without cancelling it: it fails, and keeps what a retry can use.
///
/// A transfer waits for nothing but through here or through its response, so neither its timeout nor a stop of the daemon
/// waits for what it does. At most a handful of handlers are there at a time, as each of
/// a transfer's connections waits for one thing at a time.
final class TransferControl: Sendable {
    private struct State {
        var error: JobError?
        /// The responses that it waits for.
        var streams: [ResponseStream] = []
        var handlers: [Int: @Sendable (JobError) -> Void] = [:]
        var lastHandler = 0
    }

    private let state = Mutex(State())

    /// Whether the transfer was stopped, so that another server would not help either.
    var isInterrupted: Bool { state.withLock { $0.error != nil } }

    /// Throws where the transfer was stopped.
    func check() throws(JobError) {
        if let error = state.withLock({ $0.error }) { throw error }
    }

    /// Names a response that the transfer waits for, until that is over. Throws where it was stopped before.
    func attach(_ stream: ResponseStream) throws(JobError) {
        let error = state.withLock { state in
            state.streams.removeAll(where: \.isOver)
            state.streams.append(stream)
            return state.error
        }
        if let error { throw error }
    }

    /// Lets the transfer fail with `error`, whatever it waits for; what has come in is still used.
    func interrupt(_ error: JobError) {
        let (streams, handlers) = state.withLock { state in
            guard state.error == nil else { return ([ResponseStream](), [Int: @Sendable (JobError) -> Void]()) }
            state.error = error
            defer { state.handlers = [:] }
            return (state.streams, state.handlers)
        }
        for stream in streams { stream.fail(error) }
        for handler in handlers.values { handler(error) }
    }

    /// A deadline for what is waited for: the time, the clock, and the error with which the transfer fails.
    struct Limit: Sendable {
        let deadline: NIODeadline
        let clock: any EventLoop
        let error: JobError
    }

    /// Waits for what `start` has delivered, but no longer than until the transfer is interrupted or cancelled, or `limit`
    /// passes.
    ///
    /// What was started may go on and deliver later; nobody sees that then.
    func wait<Value: Sendable>(
        limit: Limit? = nil, _ start: (Delivery<Result<Value, JobError>>) -> Void
    ) async throws(JobError) -> Value {
        let delivery = Delivery<Result<Value, JobError>>()
        let timer = limit.map { limit in
            limit.clock.scheduleTask(deadline: limit.deadline) { _ = delivery.deliver(.failure(limit.error)) }
        }
        defer { timer?.cancel() }
        guard let handler = add({ _ = delivery.deliver(.failure($0)) }) else {
            try check()
            preconditionFailure("There is an error where no handler was added.")
        }
        defer { remove(handler) }
        let outcome = await withTaskCancellationHandler {
            if !delivery.isDelivered { start(delivery) }
            return await delivery.value()
        } onCancel: {
            delivery.deliver(.failure(Self.cancelled))
        }
        return try outcome.get()
    }

    /// Has `body` called when the transfer is interrupted; nil where it was before.
    private func add(_ body: @escaping @Sendable (JobError) -> Void) -> Int? {
        state.withLock { state in
            guard state.error == nil else { return nil }
            state.lastHandler += 1
            state.handlers[state.lastHandler] = body
            return state.lastHandler
        }
    }

    private func remove(_ handler: Int) { state.withLock { $0.handlers[handler] = nil } }

    /// Waits until `deadline` by the time of `clock`.
    func sleep(until deadline: NIODeadline, by clock: any EventLoop) async throws(JobError) {
        guard deadline > clock.now else { return }
        let timer = EarlyCancellation<Scheduled<Void>> { $0.cancel() }
        defer { timer.cancel() }
        try await wait { delivery in
            timer.set(clock.scheduleTask(deadline: deadline) { _ = delivery.deliver(.success(())) })
        }
    }

    static var cancelled: JobError {
        JobError(.cancelled, "The transfer was cancelled; start it again if it is needed.")
    }
}
