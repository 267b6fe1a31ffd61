import Synchronization

// Unchecked: the references belong to the one thread that claimed the job.
/// A waiter on its way to its executor, with the Deferred whose outcome it waited for.
///
/// If the executor drops it, a waiter for the outcome is treated as if its upstream had been dropped.
@usableFromInline
final class ScheduledWaiter: @unchecked Sendable {
    private var source: DeferredCore?
    private var waiter: DeferredWaiter?
    private let isClaimed = Atomic(false)

    @usableFromInline
    init(_ waiter: DeferredWaiter, from source: DeferredCore) {
        self.source = source
        self.waiter = waiter
    }

    deinit {
        waiter?.dropScheduled()
    }

    @usableFromInline
    func run() {
        #if DEFERRED_YIELDS
            Schedule.point()
        #endif
        guard !isClaimed.exchange(true, ordering: .acquiringAndReleasing), let source, var waiter else { return }
        self.source = nil
        self.waiter = nil
        Trampoline.enter { trampoline in
            if case .follow(let following) = waiter.runScheduled(from: source, trampoline) {
                DeferredCore.pause(&waiter, following, trampoline)
            }
        }
    }
}
