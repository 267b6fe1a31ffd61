/// A piece of work that can be described now and started later, with a failure of its own type.
public protocol TypedDataSource<Output, Failure>: Sendable {
    /// What the work gives.
    associatedtype Output: Sendable
    /// What it fails with.
    associatedtype Failure: Error

    /// Starts the work, without waiting for it.
    ///
    /// It is called on the thread that starts it: the caller's or, by way of a queue, the one that made room.
    ///
    /// - Returns: The outcome, whose failure is the work's own error; cancelling it stops the work.
    func start() -> Deferred<Output, Failure>
}

/// A piece of work that can be described now and started later.
///
/// ```swift
/// struct Answer: DataSource {
///     func start() -> Deferred<Int, any Error> { .succeeded(42) }
/// }
/// ```
public protocol DataSource<Output>: TypedDataSource where Failure == any Error {
    /// What the work gives.
    associatedtype Output

    /// Starts the work, without waiting for it.
    ///
    /// It is called on the thread that starts it: the caller's or, by way of a queue, the one that made room.
    ///
    /// - Returns: The outcome, whose failure is the work's own error; cancelling it stops the work.
    func start() -> Deferred<Output, any Error>
}

extension DataSource {
    /// Starts the work as soon as a queue has room for it.
    ///
    /// - Parameters:
    ///   - queue: The queue that says when.
    ///   - priority: Higher goes first; within one priority it is first come first served.
    /// - Returns: The outcome; cancelling it before the start takes the work out of the queue.
    public func start(on queue: WorkQueue, priority: Int = 0) -> Deferred<Output, any Error> {
        queue.add(priority: priority) { self.start() }
    }
}

extension TypedDataSource {
    /// Starts the work as soon as a queue has room for it.
    ///
    /// - Parameters:
    ///   - queue: The queue that says when.
    ///   - priority: Higher goes first; within one priority it is first come first served.
    ///   - cancelled: Makes the failure of work that is cancelled before its start, on the thread that cancels.
    /// - Returns: The outcome; cancelling it before the start takes the work out of the queue.
    public func start(
        on queue: WorkQueue,
        priority: Int = 0,
        cancelled: @escaping @Sendable () -> Failure
    ) -> Deferred<Output, Failure> {
        queue.add(priority: priority, cancelled: cancelled) { self.start() }
    }
}
