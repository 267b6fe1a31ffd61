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

extension CallbackExecutor where Self == InlineExecutor {
    /// The thread that resolves, the caller's if the Deferred is resolved already, or the thread that is already
    /// running this Deferred's callbacks.
    @inlinable
    public static var inline: InlineExecutor { InlineExecutor() }
}
