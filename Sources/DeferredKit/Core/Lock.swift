import Synchronization

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// A lock for a few instructions that never release anything.
///
/// `Synchronization.Mutex` would do, but on Linux the thread sanitizer does not know it and warns.
struct Lock: ~Copyable {
    private let isTaken = Atomic(false)

    borrowing func withLock<R>(_ body: () -> R) -> R {
        var rounds = 0
        while true {
            if !isTaken.load(ordering: .relaxed),
                isTaken.compareExchange(
                    expected: false,
                    desired: true,
                    successOrdering: .acquiring,
                    failureOrdering: .relaxed
                ).exchanged
            {
                break
            }
            rounds += 1
            if rounds > 64 { sched_yield() }
        }
        defer { isTaken.store(false, ordering: .releasing) }
        return body()
    }
}
