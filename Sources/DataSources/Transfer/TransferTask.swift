import DeferredKit
import JobModel
import LoopTasks
import NIOCore

/// What a transfer's steps are given.
struct TransferHandle: Sendable {
    /// Tells how far the transfer has come.
    let report: @Sendable (ProgressUpdate) -> Void
    let control: TransferControl
    /// The event loop that the transfer lives on: its steps, its connection and its response.
    let loop: any EventLoop
    /// The loop whose clock it waits by.
    let clock: any EventLoop
    /// The uid for which it runs.
    let owner: UInt32

    /// The limit `deadline`, past which the transfer fails with `error`.
    func limit(_ deadline: NIODeadline, _ error: JobError) -> TransferControl.Limit {
        TransferControl.Limit(deadline: deadline, clock: clock, error: error)
    }
}

/// Runs a transfer's steps in a task that belongs to the Deferred it resolves.
///
/// Cancelling the Deferred cancels the task, whose cancellation handlers run before `cancel()` returns: what must not
/// be left behind is gone by then. The task runs on an event loop, that of its connection, so that a small response costs
/// no change of threads; steps that take long or block go to the file queue.
struct TransferTask: Sendable {
    let running: RunningTransfers
    let executor: LoopExecutor
    /// The loop whose clock the timeout goes by.
    let timers: any EventLoop
    /// The uid for which the transfer runs.
    let owner: UInt32
    /// Seconds after which the transfer fails with kind `timeout`, or nil for no limit.
    let timeout: Double?

    /// What is cancelled fails at once with `CancellationError`, and ends soon after.
    func start<Output: Sendable>(
        _ steps: @escaping @Sendable (TransferHandle) async throws(JobError) -> Output
    ) -> Deferred<Output, any Error> {
        start(steps) { (error) -> any Error in
            // Only the Deferred cancels the task; the task may end before the Deferred says that it was cancelled.
            Task.isCancelled ? CancellationError() : error
        }
    }

    /// The same for what takes its time to end: what is cancelled fails once it has ended.
    func startAwaitingEnd<Output: Sendable>(
        _ steps: @escaping @Sendable (TransferHandle) async throws(JobError) -> Output
    ) -> Deferred<Output, any Error> {
        // Of a typed failure the producer decides when it comes, also after a cancel.
        let work: Deferred<Output, JobError> = start(steps) { $0 }
        return work.erased()
    }

    private func start<Output: Sendable, Failure: Error>(
        _ steps: @escaping @Sendable (TransferHandle) async throws(JobError) -> Output,
        failure: @escaping @Sendable (JobError) -> Failure
    ) -> Deferred<Output, Failure> {
        // It is there before anybody has the promise's Deferred.
        let task = Handover<Task<Void, Never>>()
        let promise = Promise<Output, Failure> { _ in task.take()?.cancel() }
        let control = TransferControl()
        running.begin(control)
        let timer = timeout.map { seconds in
            timers.scheduleTask(in: .seconds(saturating: seconds)) {
                control.interrupt(
                    JobError(
                        .timeout,
                        "The attempt took longer than its timeout of \(SourceMessage.seconds(seconds)); try again, or raise it.",
                        retryable: true))
            }
        }
        // Owned by the promise above: it ends when the outcome is there, and is cancelled with it.
        task.put(
            Task(executorPreference: executor) {
                let outcome: Result<Output, Failure>
                do throws(JobError) {
                    outcome = .success(
                        try await steps(
                            TransferHandle(
                                report: { promise.report($0) }, control: control, loop: executor.loop, clock: timers,
                                owner: owner)))
                } catch {
                    outcome = .failure(failure(error))
                }
                timer?.cancel()
                running.end(control)
                promise.resolve(outcome)
            })
        return promise.deferred
    }
}
