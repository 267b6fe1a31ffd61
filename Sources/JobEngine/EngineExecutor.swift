import DeferredKit
package import Dispatch

/// The serial queue that the engine lives on, both as its actor's executor and as the place where callbacks of
/// Deferreds run. So a callback is on the engine without a task being made for it.
package final class EngineExecutor: SerialExecutor, CallbackExecutor {
    package let queue: DispatchQueue

    package init() {
        queue = DispatchQueue(label: "deferd.engine", qos: .userInitiated)
    }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
    }

    package func submit(_ job: @escaping @Sendable () -> Void) {
        queue.async(execute: job)
    }

    package func checkIsolated() {
        dispatchPrecondition(condition: .onQueue(queue))
    }
}
