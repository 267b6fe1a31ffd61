import NIOCore
import Synchronization

/// A timer that can be cancelled before it is known.
final class ScheduledTimer: Sendable {
    private let state = Mutex<(timer: Scheduled<Void>?, isCancelled: Bool)>((nil, false))

    func set(_ timer: Scheduled<Void>) {
        let isCancelled = state.withLock { state in
            state.timer = timer
            return state.isCancelled
        }
        if isCancelled { timer.cancel() }
    }

    func cancel() {
        let timer = state.withLock { state in
            state.isCancelled = true
            return state.timer
        }
        timer?.cancel()
    }
}
