// The compiler counts timeval as a member of the module that includes its header first.
import CSystemd
import Dispatch
import Glibc
package import Logging
import Synchronization

/// Extends the service manager's timeout repeatedly while a start or a stop takes long and the process works on it.
///
/// Work is measured by the kernel's counters of the process: processor time, and blocks read from and written to disks.
/// A hanging process does no work, gets no more time, and is ended by the manager.
package final class TimeoutExtension: Sendable {
    /// The kernel's counters of the process.
    struct Work: Sendable, Equatable {
        var processor: Duration
        var blocks: Int

        /// Whether there was more work than the check itself costs.
        func isMore(than earlier: Work) -> Bool {
            processor - earlier.processor >= .milliseconds(20) || blocks != earlier.blocks
        }

        static func current() -> Work {
            var usage = rusage()
            guard getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage) == 0 else {
                return Work(processor: .zero, blocks: 0)
            }
            func duration(_ time: timeval) -> Duration { .seconds(time.tv_sec) + .microseconds(time.tv_usec) }
            return Work(
                processor: duration(usage.ru_utime) + duration(usage.ru_stime),
                blocks: usage.ru_inblock &+ usage.ru_oublock)
        }
    }

    /// The time between checks, less than half of any timeout in the units.
    private static let interval = 10
    /// The extension to request each time, in seconds.
    private static let extent = 60
    /// Checks for an hour: to the kernel, a busy loop is work too.
    private static let mostLooks = 360

    private struct State {
        var looked: Work
        var looks = 0
        var isOver = true
    }

    private let state: Mutex<State>
    private let queue = DispatchQueue(label: "deferd.patience")
    private let work: @Sendable () -> Work
    private let extend: @Sendable (Int) throws(SystemdError) -> Void
    private let logger: Logger

    package convenience init(logger: Logger) {
        self.init(
            logger: logger, work: Work.current,
            extend: { (seconds) throws(SystemdError) in try ServiceNotifier().extendTimeout(seconds: seconds) })
    }

    init(
        logger: Logger, work: @escaping @Sendable () -> Work,
        extend: @escaping @Sendable (Int) throws(SystemdError) -> Void
    ) {
        (self.logger, self.work, self.extend) = (logger, work, extend)
        state = Mutex(State(looked: work()))
    }

    /// Begins to check a start or stop, until ``end()``.
    package func begin() {
        let now = work()
        state.withLock { $0 = State(looked: now, isOver: false) }
        if ServiceNotifier().isActive { lookSoon() }
    }

    private func lookSoon() {
        queue.asyncAfter(deadline: .now() + .seconds(Self.interval)) { [weak self] in
            if let self, look() { lookSoon() }
        }
    }

    /// Extends the timeout if there was work since the last check; returns false if no more checks are needed.
    func look() -> Bool {
        let now = work()
        let hasWorked = state.withLock { state -> Bool? in
            guard !state.isOver, state.looks < Self.mostLooks else { return nil }
            defer { state.looked = now }
            state.looks += 1
            return now.isMore(than: state.looked)
        }
        if hasWorked == true {
            do { try extend(Self.extent) } catch {
                logger.warning("The service manager was not asked for more time.", metadata: ["error": "\(error)"])
            }
        }
        return hasWorked != nil
    }

    /// Ends the checks, because the start or stop is over.
    package func end() { state.withLock { $0.isOver = true } }
}
