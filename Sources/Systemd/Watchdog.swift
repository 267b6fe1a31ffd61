import CSystemd
package import Logging

/// Feeds the service manager's watchdog while the process makes progress.
///
/// The watchdog is fed once per half interval, and only after a probe has passed within the interval. A hanging probe
/// is awaited, not abandoned, so at most one runs at a time, and the manager ends a stuck process.
package struct Watchdog: Sendable {
    /// How long the service manager waits for the next feed before it kills the service.
    package let interval: Duration
    private let feed: @Sendable () throws(SystemdError) -> Void

    /// The watchdog that the service manager set for this process, or nil without one.
    package init?() throws(SystemdError) {
        var microseconds: UInt64 = 0
        let result = sd_watchdog_enabled(0, &microseconds)
        guard result >= 0 else {
            throw SystemdError(
                "WATCHDOG_USEC or WATCHDOG_PID is not a number: correct it or unset both.", errorNumber: -result)
        }
        guard result > 0, microseconds > 0 else { return nil }
        let notifier = ServiceNotifier()
        self.init(
            interval: .microseconds(Int64(clamping: microseconds)),
            feed: { () throws(SystemdError) in try notifier.watchdog() })
    }

    init(interval: Duration, feed: @escaping @Sendable () throws(SystemdError) -> Void) {
        self.interval = interval
        self.feed = feed
    }

    /// Runs until its task is cancelled.
    ///
    /// The default clock stops while the machine sleeps, like the manager's. A probe must return when its task is
    /// cancelled.
    package func run(
        clock: any Clock<Duration> = SuspendingClock(), logger: Logger, probe: @Sendable () async -> Void
    ) async {
        while !Task.isCancelled {
            let (fed, elapsed) = await round(clock: clock, logger: logger, probe: probe)
            // A failed round has used half of the interval already: the next one cannot wait for the other half.
            let pause = (fed ? interval / 2 : interval / 8) - elapsed
            do { try await clock.sleep(for: max(pause, .zero)) } catch { return }
        }
    }

    private func round(
        clock: some Clock<Duration>, logger: Logger, probe: @Sendable () async -> Void
    ) async -> (fed: Bool, elapsed: Duration) {
        let start = clock.now
        await probe()
        let elapsed = start.duration(to: clock.now)
        // The result of a cancelled probe says nothing about the process.
        guard !Task.isCancelled else { return (false, elapsed) }
        guard elapsed <= interval else {
            logger.warning(
                "The watchdog was not fed, because the daemon's own probe took too long.",
                metadata: ["event": "watchdog-unfed", "elapsed": "\(elapsed)", "interval": "\(interval)"])
            return (false, elapsed)
        }
        do {
            try feed()
            return (true, elapsed)
        } catch {
            logger.error("The service manager's watchdog was not told.", metadata: ["error": "\(error)"])
            return (false, elapsed)
        }
    }
}
