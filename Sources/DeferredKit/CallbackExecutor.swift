public import Dispatch
public import Foundation

/// Where callbacks run.
///
/// A one-line conformance makes anything an executor that takes a closure and runs it once, later or elsewhere.
public protocol CallbackExecutor: Sendable {
    /// Takes a job and runs it once.
    ///
    /// - Parameter job: Must be run once; until then it keeps what it needs alive.
    func submit(_ job: @escaping @Sendable () -> Void)
}

/// Runs callbacks where they become due: on the thread that resolves, on the caller's if the Deferred is resolved
/// already, or on the thread that is already running this Deferred's callbacks.
public struct InlineExecutor: CallbackExecutor {
    /// Creates the executor; `.inline` is the same.
    @inlinable
    public init() {}

    /// Runs the job at once, on the caller's thread.
    @inlinable
    public func submit(_ job: @escaping @Sendable () -> Void) {
        job()
    }
}

/// Runs callbacks on a dispatch queue.
public struct DispatchQueueExecutor: CallbackExecutor {
    /// The queue that runs them.
    public let queue: DispatchQueue

    /// Creates an executor.
    ///
    /// - Parameter queue: The queue that runs the callbacks.
    public init(_ queue: DispatchQueue) {
        self.queue = queue
    }

    /// Adds the job to the queue.
    public func submit(_ job: @escaping @Sendable () -> Void) {
        queue.async(execute: job)
    }
}

/// Runs callbacks as operations of an operation queue.
public struct OperationQueueExecutor: CallbackExecutor {
    /// The queue that runs them.
    public let queue: OperationQueue

    /// Creates an executor.
    ///
    /// - Parameter queue: The queue that runs the callbacks.
    public init(_ queue: OperationQueue) {
        self.queue = queue
    }

    /// Adds the job to the queue.
    public func submit(_ job: @escaping @Sendable () -> Void) {
        queue.addOperation(job)
    }
}

extension CallbackExecutor where Self == InlineExecutor {
    /// The thread that resolves, the caller's if the Deferred is resolved already, or the thread that is already
    /// running this Deferred's callbacks.
    @inlinable
    public static var inline: InlineExecutor { InlineExecutor() }
}

extension CallbackExecutor where Self == DispatchQueueExecutor {
    /// A dispatch queue.
    ///
    /// - Parameter queue: The queue that runs the callbacks.
    public static func queue(_ queue: DispatchQueue) -> DispatchQueueExecutor { DispatchQueueExecutor(queue) }

    /// The global concurrent pool.
    public static var background: DispatchQueueExecutor { DispatchQueueExecutor(.global()) }

    /// The main queue.
    public static var main: DispatchQueueExecutor { DispatchQueueExecutor(.main) }
}

extension CallbackExecutor where Self == OperationQueueExecutor {
    /// An operation queue.
    ///
    /// - Parameter queue: The queue that runs the callbacks.
    public static func operations(_ queue: OperationQueue) -> OperationQueueExecutor { OperationQueueExecutor(queue) }
}
