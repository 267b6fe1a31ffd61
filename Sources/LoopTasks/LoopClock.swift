import DeferredKit
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
                // It fails only because the timer was cancelled, or the loop has ended.
                throw CancellationError()
            }
        } onCancel: {
            timer.cancel()
        }
    }
}

extension TimeAmount {
    /// The longest that a loop is told to wait: over a century of nanoseconds a deadline would not fit. Nobody waits for
    /// the difference.
    package static let century = TimeAmount.nanoseconds(3_000_000_000 * 1_000_000_000)

    /// So many seconds, at least none and at most a century; what is no number is none.
    package static func seconds(saturating seconds: Double) -> TimeAmount {
        guard seconds > 0 else { return .zero }
        return seconds >= 3_000_000_000 ? century : .nanoseconds(Int64(seconds * 1_000_000_000))
    }
}

/// Runs tasks on an event loop, so that a task that waits for channels of that loop never changes threads; and callbacks.
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
