/// A piece of work that can be described now and started later.
///
/// ```swift
/// struct Answer: DataSource {
///     func start() -> Deferred<Int, any Error> { .succeeded(42) }
/// }
/// ```
public protocol DataSource<Output>: Sendable {
    /// The result of the work.
    associatedtype Output: Sendable

    /// Starts the work, without waiting for it.
    ///
    /// It is called on the thread that starts the work: the caller's, or the thread that freed a queue's slot.
    ///
    /// - Returns: The outcome, whose failure is the work's own error; cancelling it stops the work.
    func start() -> Deferred<Output, any Error>
}

extension DataSource {
    /// Starts the work as soon as a queue has a free slot.
    ///
    /// - Parameters:
    ///   - queue: The queue.
    ///   - priority: Higher priorities start first; within one priority, first in, first out.
    /// - Returns: The outcome; cancelling it before the start removes the work from the queue.
    public func start(on queue: WorkQueue, priority: Int = 0) -> Deferred<Output, any Error> {
        queue.add(priority: priority) { self.start() }
    }
}
