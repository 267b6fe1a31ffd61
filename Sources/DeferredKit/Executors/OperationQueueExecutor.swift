#if OperationQueues
    public import Foundation

    /// Runs callbacks as operations of an operation queue.
    public struct OperationQueueExecutor: CallbackExecutor {
        /// The queue that runs them.
        public let queue: OperationQueue

        /// Creates an executor.
        public init(_ queue: OperationQueue) { self.queue = queue }

        /// Adds the job to the queue.
        public func submit(_ job: @escaping @Sendable () -> Void) {
            queue.addOperation(job)
        }
    }

    extension CallbackExecutor where Self == OperationQueueExecutor {
        /// An operation queue, which runs the callbacks.
        public static func operations(_ queue: OperationQueue) -> OperationQueueExecutor {
            OperationQueueExecutor(queue)
        }
    }
#endif
