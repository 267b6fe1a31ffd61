import DeferredKit
import JobModel
import NIOCore
import Synchronization

/// Stops a running transfer without cancelling it: the transfer fails, and keeps the data that a retry can use.
///
/// A transfer waits only through this class or through its response, so a timeout or a stop ends it at once.
final class TransferControl: Sendable {
    /// Resolved with the error when the transfer is stopped.
    private let interruption = Promise<JobError, Never>()
    /// The responses that the transfer waits for.
    private let streams = Mutex<[ResponseStream]>([])

    /// Whether the transfer was stopped.
    var isInterrupted: Bool { interruption.deferred.isResolved }

    /// Throws if the transfer was stopped.
    func check() throws(JobError) {
        if let error = interruption.deferred.outcome { throw error.get() }
    }

    /// Registers a response that the transfer will wait for; throws if the transfer was stopped.
    func attach(_ stream: ResponseStream) throws(JobError) {
        streams.withLock { streams in
            streams.removeAll(where: \.isOver)
            streams.append(stream)
        }
        try check()
    }

    /// Fails the transfer with `error`; received data can still be used.
    func interrupt(_ error: JobError) {
        guard interruption.succeed(error) else { return }
        for stream in streams.withLock(\.self) { stream.fail(error) }
    }

    /// A time after which a wait fails.
    struct Limit: Sendable {
        let deadline: NIODeadline
        let clock: any EventLoop
        let error: JobError
    }

    /// Waits until `start` resolves its promise, the transfer is interrupted or cancelled, or `limit` passes.
    ///
    /// Work that goes on afterwards may resolve the promise without effect.
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

    /// Waits until `deadline` on the clock of `clock`.
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
