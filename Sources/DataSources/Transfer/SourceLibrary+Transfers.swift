import DeferredKit
import JobModel
import LoopTasks
import NIOCore
import Synchronization

extension SourceLibrary {
    /// Runs the steps of a transfer; a cancelled one fails at once with `CancellationError`.
    func start<Output: Sendable>(
        _ context: SourceContext, _ steps: @escaping @Sendable (Transfer) async throws(JobError) -> Output
    ) -> Deferred<Output, any Error> {
        start(context, timeout: context.timeout, patience: .seconds(1), steps) { (error) -> any Error in
            // Only the Deferred cancels the task, but the task may end first.
            Task.isCancelled ? CancellationError() : error
        }
    }

    /// Runs `steps` in a task that the Deferred cancels. It fails `patience` after its timeout, even if a file system does not
    /// answer.
    ///
    /// The task's cancellation handlers run before `cancel()` returns, so they can remove files in time. The task runs
    /// on the event loop of its connections, so a small response needs no other thread; slow steps run on file threads.
    func start<Output: Sendable, Failure: Error>(
        _ context: SourceContext, timeout: Double?, patience: TimeAmount? = nil,
        _ steps: @escaping @Sendable (Transfer) async throws(JobError) -> Output,
        failure: @escaping @Sendable (JobError) -> Failure
    ) -> Deferred<Output, Failure> {
        let executor = LoopExecutor(group.next())
        // Filled before any other code has the promise's Deferred.
        let task = Handover<Task<Void, Never>>()
        let promise = Promise<Output, Failure> { _ in task.take()?.cancel() }
        let transfer = Transfer(
            context, rules, shared, loop: executor.loop, report: { promise.report($0) })
        let control = transfer.control
        running.begin(control)
        context.control.put(control)
        let timer = timeout.map { seconds in
            transfer.clock.scheduleTask(in: .seconds(saturating: seconds)) {
                let error = JobError(
                    .timeout,
                    "The attempt took longer than its timeout of \(SourceMessage.seconds(seconds)); try again, or raise it.",
                    retryable: true)
                control.interrupt(error)
                guard let patience else { return }
                transfer.clock.scheduleTask(in: patience) { promise.resolve(.failure(failure(error))) }
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

/// All running transfers, so that a stopping daemon can end them.
final class RunningTransfers: Sendable {
    private struct State {
        var controls: [ObjectIdentifier: TransferControl] = [:]
        /// Resolved when the last transfer ends; set when the stop begins.
        var stopper: Promise<Void, Never>?
    }

    private let state = Mutex(State())

    private static var stopped: JobError {
        JobError(
            .cancelled, "The transfer was stopped with all others; start it again later.", retryable: true)
    }

    func begin(_ control: TransferControl) {
        let isStopping = state.withLock { state in
            state.controls[ObjectIdentifier(control)] = control
            return state.stopper != nil
        }
        if isStopping { control.interrupt(Self.stopped) }
    }

    func end(_ control: TransferControl) {
        let stopper = state.withLock { state in
            state.controls[ObjectIdentifier(control)] = nil
            return state.controls.isEmpty ? state.stopper : nil
        }
        stopper?.succeed(())
    }

    /// Interrupts all transfers and waits for their ends; returns how many still run after `patience`.
    ///
    /// A file system that does not answer can delay a transfer for ever, hence the limit.
    func stop(patience: TimeAmount, by clock: any EventLoop) async -> Int {
        let stopper = Promise<Void, Never>()
        let controls = state.withLock { state in
            state.stopper = stopper
            return Array(state.controls.values)
        }
        if controls.isEmpty { stopper.succeed(()) }
        for control in controls { control.interrupt(Self.stopped) }
        let timer = clock.scheduleTask(in: patience) { _ = stopper.succeed(()) }
        await stopper.deferred.get()
        timer.cancel()
        return state.withLock { $0.controls.count }
    }
}
