import Foundation

/// A mutex for critical sections longer than a few instructions.
///
/// On Linux, the thread sanitizer does not support `Synchronization.Mutex` and warns.
struct Lock: Sendable {
    private let lock = NSLock()

    /// Runs `body` with the lock held. It must neither wait nor call foreign code, and must return the references that
    /// it drops, so that they are released after unlocking.
    func withLock<R>(_ body: () -> R) -> R {
        #if DEFERRED_YIELDS
            Schedule.point()
        #endif
        return lock.withLock(body)
    }
}
