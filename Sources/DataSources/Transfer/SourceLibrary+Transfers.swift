import DeferredKit
import JobModel
import LoopTasks
import NIOCore

extension SourceLibrary {
    /// Runs the steps of a transfer; a cancelled one fails at once with `CancellationError`.
    func start<Output: Sendable>(
        _ context: SourceContext, _ steps: @escaping @Sendable (Transfer) async throws(JobError) -> Output
    ) -> Deferred<Output, any Error> {
        start(context, timeout: context.timeout, steps) { (error) -> any Error in
            // Only the Deferred cancels the task, but the task may end first.
            Task.isCancelled ? CancellationError() : error
        }
    }

    /// Runs the steps of a transfer; a cancelled one fails once the steps have ended.
    func startAwaitingEnd<Output: Sendable>(
        _ context: SourceContext, timeout: Double?,
        _ steps: @escaping @Sendable (Transfer) async throws(JobError) -> Output
    ) -> Deferred<Output, any Error> {
        // With a typed failure, the producer decides when a cancelled Deferred ends.
        let work: Deferred<Output, JobError> = start(context, timeout: timeout, steps) { $0 }
        return work.erased()
    }

    /// Runs `steps` in a task that the Deferred cancels.
    ///
    /// The task's cancellation handlers run before `cancel()` returns, so they can remove files in time. The task runs
    /// on the event loop of its connections, so a small response needs no other thread; slow steps run on file threads.
    private func start<Output: Sendable, Failure: Error>(
        _ context: SourceContext, timeout: Double?,
        _ steps: @escaping @Sendable (Transfer) async throws(JobError) -> Output,
        failure: @escaping @Sendable (JobError) -> Failure
    ) -> Deferred<Output, Failure> {
        let executor = nextExecutor()
        let clock = timers ?? executor.loop
        // Filled before any other code has the promise's Deferred.
        let task = Handover<Task<Void, Never>>()
        let promise = Promise<Output, Failure> { _ in task.take()?.cancel() }
        let transfer = Transfer(
            context, rules, shared, loop: executor.loop, clock: clock, report: { promise.report($0) })
        let control = transfer.control
        running.begin(control)
        let timer = timeout.map { seconds in
            clock.scheduleTask(in: .seconds(saturating: seconds)) {
                control.interrupt(
                    JobError(
                        .timeout,
                        "The attempt took longer than its timeout of \(SourceMessage.seconds(seconds)); try again, or raise it.",
                        retryable: true))
            }
        }
        // The promise owns the task: the task ends when it resolves the promise.
        task.put(
            Task(executorPreference: executor) { [running] in
                let outcome: Result<Output, Failure>
                do throws(JobError) {
                    outcome = .success(try await steps(transfer))
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
