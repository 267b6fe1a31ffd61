/// Runs callbacks as tasks that prefer one of Swift's task executors, in no particular order.
public struct TaskCallbackExecutor: CallbackExecutor {
    private let executor: any TaskExecutor

    /// Creates an executor.
    public init(_ executor: any TaskExecutor) { self.executor = executor }

    /// Starts a task that runs the job.
    public func submit(_ job: @escaping @Sendable () -> Void) {
        // The job owns the task, which ends with it.
        Task(executorPreference: executor) { job() }
    }
}

extension CallbackExecutor where Self == TaskCallbackExecutor {
    /// A task executor, for tasks that run the callbacks.
    public static func tasks(on executor: any TaskExecutor) -> TaskCallbackExecutor { TaskCallbackExecutor(executor) }
}
