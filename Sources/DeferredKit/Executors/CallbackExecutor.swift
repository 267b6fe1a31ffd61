/// Where callbacks run.
///
/// A one-line conformance makes anything an executor that takes a closure and runs it once, later or elsewhere.
public protocol CallbackExecutor: Sendable {
    /// Takes a job and runs it once.
    ///
    /// - Parameter job: Must be run once; until then it keeps what it needs alive.
    func submit(_ job: @escaping @Sendable () -> Void)
}
