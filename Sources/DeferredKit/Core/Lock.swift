#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

// Unchecked: the pointer is never changed, and the mutex is made for several threads.
/// A mutex for critical sections longer than a few instructions.
///
/// On Linux, the thread sanitizer does not support `Synchronization.Mutex` and warns.
final class Lock: @unchecked Sendable {
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)

    init() {
        let status = pthread_mutex_init(mutex, nil)
        precondition(status == 0, "no memory left for a mutex of DeferredKit")
    }

    deinit {
        pthread_mutex_destroy(mutex)
        mutex.deallocate()
    }

    /// Runs `body` with the lock held. It must neither wait nor call foreign code, and must return the references that
    /// it drops, so that they are released after unlocking.
    func withLock<R>(_ body: () -> R) -> R {
        #if DEFERRED_YIELDS
            Schedule.point()
        #endif
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return body()
    }
}

/// Counts how often a thread found a waiter's lock taken.
struct Backoff {
    private var rounds = 0

    /// Critical sections are short, so a thread that keeps the lock for longer was most likely preempted.
    mutating func pause() {
        rounds += 1
        if rounds > 16 { sched_yield() }
    }
}
