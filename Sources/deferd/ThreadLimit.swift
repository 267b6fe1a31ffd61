import CLinux
import Dispatch

/// Whether the process may have the threads that it needs, as `TasksMax=` and RLIMIT_NPROC bound them.
enum ThreadLimit {
    /// Event loops, the store's writer and readers, files, timers. What else there is does with fewer.
    private static let needed = 36

    /// Starts so many threads and lets them end: those below start their own where nothing can be done about one that does not.
    static func check() throws(Daemon.StartError) {
        let gate = Gate()
        var started = 0
        defer {
            for _ in 0..<started { gate.opening.signal() }
            // Gone, so that they do not count when the real ones start.
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
