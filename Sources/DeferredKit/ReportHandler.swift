// Unchecked: the handler is under the lock.
/// The handler of a kind of report, which any thread may set or call.
final class ReportHandler<Report>: @unchecked Sendable {
    private let lock = Lock()
    private var handler: (@Sendable (Report) -> Void)?

    func set(_ handler: (@Sendable (Report) -> Void)?) {
        // The former one is released after unlocking.
        let former = lock.withLock {
            defer { self.handler = handler }
            return self.handler
        }
        withExtendedLifetime(former) {}
    }

    func report(_ report: Report) { lock.withLock { handler }?(report) }
}
