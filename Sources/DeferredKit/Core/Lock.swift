#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

// Unchecked: the pointer never changes, and mutexes are made for several threads.
/// A mutex for critical sections longer than a few instructions.
///
/// On Linux, the thread sanitizer does not support `Synchronization.Mutex` and warns.
struct Lock: ~Copyable, @unchecked Sendable {
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>

    init() {
        mutex = .allocate(capacity: 1)
        let status = pthread_mutex_init(mutex, nil)
        precondition(status == 0, "no mutex left for DeferredKit")
    }

    deinit {
        pthread_mutex_destroy(mutex)
        mutex.deallocate()
    }

    /// Runs `body` with the lock held. It must neither wait nor call foreign code, and must return the references that
    /// it drops, so that they are released after unlocking.
    borrowing func withLock<R>(_ body: () -> R) -> R {
        #if DEFERRED_YIELDS
            Schedule.point()
        #endif
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return body()
    }
}
