import Dispatch
import JobCore
import JobModel

/// Wakes the engine when the core wants to know the time: one timer for each clock, armed for the next wake only, and not at
/// all while there is none.
final class WakeTimers {
    private let wall: any DispatchSourceTimer
    private let monotonic: any DispatchSourceTimer
    private var armed = CoreWake()

    /// `fired` is called on `queue`.
    init(on queue: DispatchQueue, fired: @escaping @Sendable () -> Void) {
        wall = DispatchSource.makeTimerSource(queue: queue)
        monotonic = DispatchSource.makeTimerSource(queue: queue)
        for timer in [wall, monotonic] {
            timer.setEventHandler(handler: fired)
            timer.activate()
        }
    }

    deinit {
        wall.cancel()
        monotonic.cancel()
    }

    func arm(_ wake: CoreWake, now: CoreTime) {
        guard wake != armed else { return }
        if wake.wall != armed.wall {
            let wait = wake.wall.map { $0.milliseconds.saturatingSubtracting(now.wall.milliseconds) }
            wall.schedule(wallDeadline: wait.map { .now() + .milliseconds(Self.bounded($0)) } ?? .distantFuture)
        }
        if wake.monotonic != armed.monotonic {
            let wait = wake.monotonic.map { $0.saturatingSubtracting(now.monotonic) }
            monotonic.schedule(
                deadline: wait.map { .now() + .nanoseconds(Self.bounded($0)) } ?? .distantFuture,
                leeway: .milliseconds(1))
        }
        armed = wake
    }

    /// A timer fired: the next wake is armed anew, even if it is the same.
    func reset() { armed = CoreWake() }

    /// At most what a timer can be set to; for a longer wait it fires once in between.
    private static func bounded(_ wait: Int64) -> Int { Int(max(0, min(wait, 1 << 60))) }
}
