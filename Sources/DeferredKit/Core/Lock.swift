#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

// Unchecked: the pointer never changes, and a mutex is made for several threads.
/// A mutex for critical sections longer than a few instructions.
///
/// `Synchronization.Mutex` would do, but on Linux the thread sanitizer does not know it and warns.
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

    /// Runs `body` alone. It must neither wait nor call foreign code, and has to return the references it drops, so
    /// that they are released after unlocking.
    borrowing func withLock<R>(_ body: () -> R) -> R {
        #if DEFERRED_YIELDS
            Schedule.point()
        #endif
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return body()
    }
}
