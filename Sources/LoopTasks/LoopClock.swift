package import NIOCore

/// Tells time as `SuspendingClock` does and sleeps by an event loop's timers.
///
/// A sleep of the standard clocks starts threads of libdispatch's pool, which wakes up every second from then on.
package struct LoopClock: Clock {
    private let loop: any EventLoop

    package init(_ loop: any EventLoop) {
        self.loop = loop
    }

    package var now: SuspendingClock.Instant { SuspendingClock().now }

    package var minimumResolution: Duration { .nanoseconds(1) }

    package func sleep(until deadline: SuspendingClock.Instant, tolerance: Duration?) async throws {
        try Task.checkCancellation()
        guard deadline > now else { return }
        let (seconds, attoseconds) = now.duration(to: deadline).components
        let pause = min(
            TimeAmount.century, .nanoseconds(min(seconds, 3_000_000_000) * 1_000_000_000 + attoseconds / 1_000_000_000))
        let timer = loop.scheduleTask(in: pause) {}
        try await withTaskCancellationHandler {
            do {
                try await timer.futureResult.get()
            } catch {
                // The one reason for which it fails, but for a loop that has ended.
                throw CancellationError()
            }
        } onCancel: {
            timer.cancel()
        }
    }
}
