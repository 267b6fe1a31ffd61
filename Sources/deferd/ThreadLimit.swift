import Dispatch
import Glibc

/// The limit on threads, set by `TasksMax=` and RLIMIT_NPROC.
enum ThreadLimit {
    /// Event loops, the engine, the store's writer and readers, files, timers.
    private static let needed = 36
    private static let end = DispatchSemaphore(value: 0)

    /// Starts as many threads as the daemon needs and ends them again: later, a missing thread could not be reported.
    static func check() throws(Daemon.StartError) {
        var started: [pthread_t] = []
        defer {
            for _ in started { end.signal() }
            // They must be gone when the real ones start.
            for thread in started { pthread_join(thread, nil) }
        }
        while started.count < needed {
            var thread = pthread_t()
            let result = pthread_create(
                &thread, nil,
                { _ in
                    ThreadLimit.end.wait()
                    return nil
                }, nil)
            guard result == 0 else {
                throw Daemon.StartError(
                    code: .tryAgain,
                    message:
                        "Only \(started.count) of \(needed) threads can be started; raise TasksMax= or the limit on processes."
                )
            }
            started.append(thread)
        }
    }
}
