#if DEFERRED_YIELDS
    import Glibc
    import Synchronization

    /// Yields the thread at some locks and atomics, so that rare interleavings become common.
    ///
    /// Only in builds with `DEFERRED_YIELDS=1`. Each thread has its own sequence of decisions, derived from the seed
    /// (`DEFERRED_SEED`, or 1) and the number of threads before it.
    @usableFromInline
    enum Schedule {
        private static let seed: UInt64 = getenv("DEFERRED_SEED").flatMap { UInt64(String(cString: $0)) } ?? 1
        private static let threads = Atomic<UInt64>(0)
        private static let key: pthread_key_t = {
            var key = pthread_key_t()
            precondition(pthread_key_create(&key, nil) == 0, "no thread-specific key left for DeferredKit")
            return key
        }()

        /// A point at which another thread may run.
        @usableFromInline
        @inline(never)
        static func point() {
            // The state of xorshift, which is never 0, kept in the pointer itself.
            var state = UInt64(UInt(bitPattern: pthread_getspecific(key)))
            if state == 0 {
                let number = threads.wrappingAdd(1, ordering: .relaxed).newValue
                state = (seed &* 0x9E37_79B9_7F4A_7C15) ^ (number &* 0xBF58_476D_1CE4_E5B9) | 1
            }
            state ^= state << 13
            state ^= state >> 7
            state ^= state << 17
            pthread_setspecific(key, UnsafeRawPointer(bitPattern: UInt(state)))
            switch state % 32 {
            case 0, 1: sched_yield()
            case 2: for _ in 0..<4 { sched_yield() }
            case 3: usleep(1)
            default: break
            }
        }
    }
#endif
