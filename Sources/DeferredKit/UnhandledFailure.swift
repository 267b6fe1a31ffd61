/// Reports failures that no consumer looked at.
///
/// A failed Deferred that is released before any consumer has looked at its failure is most likely a bug. Any link,
/// list, `upon` or wait takes responsibility for the failure; a `CancellationError` is never reported.
public enum UnhandledFailure {
    private static let handler = ReportHandler<any Error>()

    /// Sets the handler for such failures.
    ///
    /// - Parameter handler: Runs on the thread that released the Deferred, which may be any. Nil, the initial value,
    ///   ignores the failures.
    public static func setHandler(_ handler: (@Sendable (any Error) -> Void)?) {
        self.handler.set(handler)
    }

    static func report(_ error: any Error) {
        if !(error is CancellationError) { handler.report(error) }
    }
}
