import DeferredKit
package import NIOCore

/// Tells the time like `SuspendingClock` and sleeps with an event loop's timers.
///
/// A sleep with the standard clocks starts threads of libdispatch's pool, which then wakes up every second.
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
        let timer = loop.scheduleTask(in: .seconds(saturating: Double(seconds) + Double(attoseconds) / 1e18)) {}
        try await withTaskCancellationHandler {
            do {
                try await timer.futureResult.get()
            } catch {
                // This fails only because the timer was cancelled, or the loop has ended.
                throw CancellationError()
            }
        } onCancel: {
            timer.cancel()
        }
    }
}

extension TimeAmount {
    /// A duration in seconds, at least 0 and at most a century, as a later deadline in nanoseconds would overflow; NaN counts
    /// as 0.
    package static func seconds(saturating seconds: Double) -> TimeAmount {
        seconds > 0 ? .nanoseconds(Int64(min(seconds, 3_000_000_000) * 1_000_000_000)) : .zero
    }
}

/// Runs tasks and callbacks on an event loop, so a task that waits for channels of that loop never changes threads.
package final class LoopExecutor: TaskExecutor, CallbackExecutor {
    package let loop: any EventLoop

    package init(_ loop: any EventLoop) {
        self.loop = loop
    }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        loop.execute { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }

    package func submit(_ job: @escaping @Sendable () -> Void) {
        loop.execute(job)
    }
}
