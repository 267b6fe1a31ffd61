import CLinux
import Dispatch

/// The limit on threads, set by `TasksMax=` and RLIMIT_NPROC.
enum ThreadLimit {
    /// Event loops, the store's writer and readers, files, timers.
    private static let needed = 36

    /// Starts as many threads as the daemon needs and ends them again: later, a missing thread could not be reported.
    static func check() throws(Daemon.StartError) {
        let gate = Gate()
        var started = 0
        defer {
            for _ in 0..<started { gate.opening.signal() }
            // They must be gone when the real ones start.
            for _ in 0..<started { gate.leaving.wait() }
        }
        while started < needed {
            let context = Unmanaged.passRetained(gate)
            let result = deferd_start_thread(
                64 << 10,
                { context in
                    guard let context else { return nil }
                    let gate = Unmanaged<Gate>.fromOpaque(context).takeRetainedValue()
                    gate.opening.wait()
                    gate.leaving.signal()
                    return nil
                }, context.toOpaque())
            guard result == 0 else {
                context.release()
                throw Daemon.StartError(
                    code: .tryAgain,
                    message:
                        "Only \(started) of \(needed) threads can be started; raise TasksMax= or the limit on processes."
                )
            }
            started += 1
        }
    }

    private final class Gate: Sendable {
        let opening = DispatchSemaphore(value: 0)
        let leaving = DispatchSemaphore(value: 0)
    }
}
