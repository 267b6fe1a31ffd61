/// Where callbacks run.
///
/// A one-line conformance turns anything that takes a closure and runs it once, later or elsewhere, into an executor.
public protocol CallbackExecutor: Sendable {
    /// Takes a job and runs it once.
    ///
    /// - Parameter job: The executor must run it once; until then, the job retains what it needs.
    func submit(_ job: @escaping @Sendable () -> Void)
}

/// Runs callbacks where they become due: on the resolving thread, on the caller's if the Deferred is already resolved,
/// or on the thread that is already running this Deferred's callbacks.
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
    /// The resolving thread, the caller's if the Deferred is already resolved, or the thread that is already running
    /// this Deferred's callbacks.
    @inlinable
    public static var inline: InlineExecutor { InlineExecutor() }
}
