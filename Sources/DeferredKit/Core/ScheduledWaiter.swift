// Unchecked: the executor runs it once.
/// A waiter on its way to its executor, with the Deferred whose outcome it waited for.
@usableFromInline
final class ScheduledWaiter: @unchecked Sendable {
    private var source: DeferredCore?
    private var waiter: DeferredWaiter?

    @usableFromInline
    init(_ waiter: DeferredWaiter, from source: DeferredCore) {
        self.source = source
        self.waiter = waiter
    }

    @usableFromInline
    func run() {
        guard let source, var waiter else { return }
        self.source = nil
        self.waiter = nil
        Trampoline.enter { trampoline in
            waiter.runScheduled(from: source, trampoline)
            DeferredCore.shorten(&waiter, trampoline)
        }
    }
}
