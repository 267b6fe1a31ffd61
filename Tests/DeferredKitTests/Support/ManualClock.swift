import Foundation

/// A clock that stands still until a test advances it.
final class ManualClock: Clock {
    struct Instant: InstantProtocol {
        var offset: Duration
        func advanced(by duration: Duration) -> Instant { Instant(offset: offset + duration) }
        func duration(to other: Instant) -> Duration { other.offset - offset }
        static func < (lhs: Instant, rhs: Instant) -> Bool { lhs.offset < rhs.offset }
    }

    private struct Sleeper {
        let id: Int
        let deadline: Instant
        let continuation: CheckedContinuation<Void, any Error>
    }

    private struct State {
        var now = Instant(offset: .zero)
        var next = 0
        var sleepers: [Sleeper] = []
        var cancelled: Set<Int> = []
        /// Every sleep that was ever begun.
        var requests: [Duration] = []
        var watchers: [(count: Int, continuation: CheckedContinuation<Void, Never>)] = []
    }

    private let lock = NSLock()
    // Unsafe: every access is under the lock above.
    nonisolated(unsafe) private var state = State()

    var now: Instant { lock.withLock { state.now } }
    var minimumResolution: Duration { .nanoseconds(1) }
    /// How long each sleep that was ever begun was to last.
    var requests: [Duration] { lock.withLock { state.requests } }
    var sleeperCount: Int { lock.withLock { state.sleepers.count } }

    func sleep(until deadline: Instant, tolerance: Duration?) async throws {
        let id = lock.withLock {
            state.next += 1
            return state.next
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let watchers = lock.withLock { () -> [CheckedContinuation<Void, Never>]? in
                    guard state.cancelled.remove(id) == nil else { return nil }
                    state.requests.append(state.now.duration(to: deadline))
                    state.sleepers.append(Sleeper(id: id, deadline: deadline, continuation: continuation))
                    let count = state.requests.count
                    let ready = state.watchers.filter { $0.count <= count }
                    state.watchers.removeAll { $0.count <= count }
                    return ready.map(\.continuation)
                }
                guard let watchers else { return continuation.resume(throwing: CancellationError()) }
                for watcher in watchers { watcher.resume() }
            }
        } onCancel: {
            let sleeper = lock.withLock { () -> Sleeper? in
                guard let index = state.sleepers.firstIndex(where: { $0.id == id }) else {
                    state.cancelled.insert(id)
                    return nil
                }
                return state.sleepers.remove(at: index)
            }
            sleeper?.continuation.resume(throwing: CancellationError())
        }
    }

    /// Waits until this many sleeps have begun in all.
    func slept(_ count: Int) async {
        await withCheckedContinuation { continuation in
            let isReady = lock.withLock {
                guard state.requests.count < count else { return true }
                state.watchers.append((count, continuation))
                return false
            }
            if isReady { continuation.resume() }
        }
    }

    func advance(by duration: Duration) {
        let due = lock.withLock { () -> [Sleeper] in
            let now = state.now.advanced(by: duration)
            state.now = now
            let due = state.sleepers.filter { $0.deadline <= now }
            state.sleepers.removeAll { $0.deadline <= now }
            return due
        }
        for sleeper in due { sleeper.continuation.resume() }
    }
}
