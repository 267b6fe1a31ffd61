/// Reports failures that no consumer looked at.
///
/// A failed Deferred that is released before any consumer has looked at its failure is most likely a bug. Any link,
/// list, `upon` or wait takes responsibility for the failure; a `CancellationError` is never reported.
public enum UnhandledFailure {
    private static let lock = Lock()
    // Unsafe: every access is under the lock above.
    nonisolated(unsafe) private static var handler: (@Sendable (any Error) -> Void)?

    /// Sets the handler for such failures.
    ///
    /// - Parameter handler: Runs on the thread that released the Deferred, which may be any. Nil, the initial value,
    ///   ignores the failures.
    public static func setHandler(_ handler: (@Sendable (any Error) -> Void)?) {
        let former = lock.withLock { () -> (@Sendable (any Error) -> Void)? in
            let former = self.handler
            self.handler = handler
            return former
        }
        withExtendedLifetime(former) {}
    }

    static func report(_ error: any Error) {
        guard !(error is CancellationError) else { return }
        let handler = lock.withLock { self.handler }
        handler?(error)
    }
}
