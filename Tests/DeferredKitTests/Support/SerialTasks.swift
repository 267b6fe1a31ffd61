import Dispatch

/// Runs tasks on one queue, so that a test knows when a task has gone as far as it can.
final class SerialTasks: TaskExecutor {
    private let queue = DispatchQueue(label: "serial tasks")

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }

    /// Starts a task and returns once it waits or is done.
    func start<T: Sendable>(_ body: @escaping @Sendable () async throws -> T) async -> Task<T, any Error> {
        let task = Task(executorPreference: self) { try await body() }
        await settle()
        return task
    }

    /// Returns when everything that was enqueued has run.
    func settle() async {
        await withCheckedContinuation { continuation in queue.async { continuation.resume() } }
    }
}
