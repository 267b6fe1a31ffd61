import DeferredKit
import JobModel
import NIOCore
import Synchronization

/// Stops a running transfer from outside without cancelling it: it fails, and keeps what a retry can use.
///
/// A transfer waits for nothing but through here or through its response, so neither its timeout nor a stop of the daemon
/// waits for what it does.
final class TransferControl: Sendable {
    /// Resolved with the error once the transfer is stopped.
    private let interruption = Promise<JobError, Never>()
    /// The responses that it waits for.
    private let streams = Mutex<[ResponseStream]>([])

    /// Whether the transfer was stopped, so that another server would not help either.
    var isInterrupted: Bool { interruption.deferred.isResolved }

    /// Throws where the transfer was stopped.
    func check() throws(JobError) {
        if let error = interruption.deferred.outcome { throw error.get() }
    }

    /// Names a response that the transfer waits for, until that is over. Throws where it was stopped before.
    func attach(_ stream: ResponseStream) throws(JobError) {
        streams.withLock { streams in
            streams.removeAll(where: \.isOver)
            streams.append(stream)
        }
        try check()
    }

    /// Lets the transfer fail with `error`, whatever it waits for; what has come in is still used.
    func interrupt(_ error: JobError) {
        guard interruption.succeed(error) else { return }
        for stream in streams.withLock(\.self) { stream.fail(error) }
    }

    /// A deadline for what is waited for: the time, the clock, and the error with which the transfer fails.
    struct Limit: Sendable {
        let deadline: NIODeadline
        let clock: any EventLoop
        let error: JobError
    }

    /// Waits for what `start` resolves its promise with, but no longer than until the transfer is interrupted or cancelled, or
    /// `limit` passes.
    ///
    /// What was started may go on and resolve the promise later, which then has no effect.
    func wait<Value: Sendable>(
        limit: Limit? = nil, _ start: (Promise<Value, JobError>) -> Void
    ) async throws(JobError) -> Value {
        try check()
        guard !Task.isCancelled else { throw Self.cancelled }
        let promise = Promise<Value, JobError> { $0.fail(Self.cancelled) }
        let observation = interruption.deferred.upon { promise.fail($0.get()) }
        defer { observation.cancel() }
        let timer = limit.map { limit in
            limit.clock.scheduleTask(deadline: limit.deadline) { _ = promise.fail(limit.error) }
        }
        defer { timer?.cancel() }
        start(promise)
        return try await promise.deferred.get()
    }

    /// Waits until `deadline` by the time of `clock`.
    func sleep(until deadline: NIODeadline, by clock: any EventLoop) async throws(JobError) {
        guard deadline > clock.now else { return }
        try await wait { promise in
            let timer = clock.scheduleTask(deadline: deadline) { _ = promise.succeed(()) }
            promise.deferred.upon { _ in timer.cancel() }
        }
    }

    static var cancelled: JobError {
        JobError(.cancelled, "The transfer was cancelled; start it again if it is needed.")
    }
}
