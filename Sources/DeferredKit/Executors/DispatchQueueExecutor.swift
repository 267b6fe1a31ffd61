public import Dispatch

/// Runs callbacks on a dispatch queue.
public struct DispatchQueueExecutor: CallbackExecutor {
    /// The queue that runs them.
    public let queue: DispatchQueue

    /// Creates an executor.
    public init(_ queue: DispatchQueue) { self.queue = queue }

    /// Adds the job to the queue.
    public func submit(_ job: @escaping @Sendable () -> Void) {
        queue.async(execute: job)
    }
}

extension CallbackExecutor where Self == DispatchQueueExecutor {
    /// A dispatch queue, which runs the callbacks.
    public static func queue(_ queue: DispatchQueue) -> DispatchQueueExecutor { DispatchQueueExecutor(queue) }

    /// The global concurrent pool.
    public static var background: DispatchQueueExecutor { DispatchQueueExecutor(.global()) }

    /// The main queue.
    public static var main: DispatchQueueExecutor { DispatchQueueExecutor(.main) }
}
