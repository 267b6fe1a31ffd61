import DeferredKit
import JobModel
import NIOCore

/// Stops a running transfer without cancelling it: the transfer fails, and keeps the data that a retry can use.
///
/// A transfer waits only through this class, so a timeout or a stop ends it at once.
package final class TransferControl: Sendable {
    /// Resolved with the error when the transfer is stopped.
    private let interruption = Promise<JobError, Never>()
    /// The event loop whose clock measures timeouts.
    let clock: any EventLoop

    init(_ clock: any EventLoop) { self.clock = clock }

    var isInterrupted: Bool { interruption.deferred.isResolved }

    func check() throws(JobError) {
        if let error = interruption.deferred.outcome { throw error.get() }
        guard !Task.isCancelled else { throw Self.cancelled }
    }

    /// Fails the transfer with `error` at its next wait.
    func interrupt(_ error: JobError) { interruption.succeed(error) }

    struct Limit: Sendable {
        let deadline: NIODeadline
        let error: @Sendable () -> JobError
    }

    /// Waits until `start` resolves its promise, the transfer is interrupted or cancelled, or `limit` passes.
    ///
    /// Work that goes on afterwards may resolve the promise without effect.
    func wait<Value: Sendable>(
        limit: Limit? = nil, _ start: (Promise<Value, JobError>) -> Void
    ) async throws(JobError) -> Value {
        try check()
        if let limit, limit.deadline <= clock.now { throw limit.error() }
        let promise = Promise<Value, JobError> { $0.fail(Self.cancelled) }
        let observation = interruption.deferred.upon { promise.fail($0.get()) }
        defer { observation.cancel() }
        let timer = limit.map { limit in
            clock.scheduleTask(deadline: limit.deadline) { _ = promise.fail(limit.error()) }
        }
        defer { timer?.cancel() }
        start(promise)
        return try await promise.deferred.get()
    }

    /// Waits for `body`, which runs on `queue`, unless the wait ends before it starts.
    func run<Value: Sendable>(
        on queue: FileQueue, limit: Limit? = nil, _ body: @escaping @Sendable () throws(JobError) -> Value
    ) async throws(JobError) -> Value {
        try await wait(limit: limit) { promise in
            queue.start {
                guard !promise.deferred.isResolved else { return }
                promise.resolve(Result { () throws(JobError) in try body() })
            }
        }
    }

    func sleep(for pause: TimeAmount) async throws(JobError) {
        guard pause > .zero else { return }
        try await wait { promise in
            let timer = clock.scheduleTask(in: pause) { _ = promise.succeed(()) }
            promise.deferred.upon { _ in timer.cancel() }
        }
    }

    /// Stops a download so that it can be resumed.
    package func hold() { interrupt(Self.cancelled) }

    static var cancelled: JobError {
        JobError(.cancelled, "The transfer was cancelled; start it again if it is needed.")
    }
}
