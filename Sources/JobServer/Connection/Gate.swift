import DequeModule
import NIOCore
import Synchronization

/// Lets so many through at a time, and the others in the order they came.
///
/// Whoever was let through must say when they are done. Nobody overtakes those who wait, and where nobody is inside one goes
/// through, however much they are.
final class Gate: Sendable {
    fileprivate struct State {
        var inside = 0
        var waiting: Deque<(size: Int, goOn: CheckedContinuation<Void, Never>)> = []
    }

    private let state = Mutex(State())
    private let most: @Sendable () -> Int

    /// `most` may change; those that are too many then stay inside.
    init(most: @escaping @Sendable () -> Int) {
        self.most = most
    }

    /// Whether somebody is inside.
    var isBusy: Bool { state.withLock { $0.inside > 0 } }

    /// Returns once it is the caller's turn, who counts as `size`.
    func enter(_ size: Int = 1) async {
        let most = most()
        if state.withLock({ $0.waiting.isEmpty && $0.admits(size, most) }) { return }
        await withCheckedContinuation { continuation in
            let isOpen = state.withLock { state in
                if state.waiting.isEmpty, state.admits(size, most) { return true }
                state.waiting.append((size, continuation))
                return false
            }
            if isOpen { continuation.resume() }
        }
    }

    /// One who was let through is done.
    func leave(_ size: Int = 1) {
        let most = most()
        let next = state.withLock { state in
            state.inside -= size
            var next: [CheckedContinuation<Void, Never>] = []
            while let first = state.waiting.first, state.admits(first.size, most) {
                state.waiting.removeFirst()
                next.append(first.goOn)
            }
            return next
        }
        for continuation in next { continuation.resume() }
    }

    /// The same once `pause` is over, where there is one.
    func leave(_ size: Int = 1, after pause: TimeAmount?, on loop: any EventLoop) {
        guard let pause else { return leave(size) }
        loop.scheduleTask(in: pause) { self.leave(size) }
    }
}

extension Gate.State {
    /// Lets one in where there is room.
    fileprivate mutating func admits(_ size: Int, _ most: Int) -> Bool {
        guard inside == 0 || size <= most - inside else { return false }
        inside += size
        return true
    }
}
