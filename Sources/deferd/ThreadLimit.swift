import Dispatch
import JobEngine

/// The limit on threads, set by `TasksMax=` and RLIMIT_NPROC.
enum ThreadLimit {
    /// Event loops, the store's writer and readers, files, timers.
    private static let needed = 36

    /// Starts as many threads as the daemon needs and ends them again: later, a missing thread could not be reported.
    static func check() throws(Daemon.StartError) {
        let (opening, leaving) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        var started = 0
        defer {
            for _ in 0..<started { opening.signal() }
            // They must be gone when the real ones start.
            for _ in 0..<started { leaving.wait() }
        }
        while started < needed {
            let isStarted = Engine.startThread {
                opening.wait()
                leaving.signal()
            }
            guard isStarted else {
                throw Daemon.StartError(
                    code: .tryAgain,
                    message:
                        "Only \(started) of \(needed) threads can be started; raise TasksMax= or the limit on processes."
                )
            }
            started += 1
        }
    }
}
