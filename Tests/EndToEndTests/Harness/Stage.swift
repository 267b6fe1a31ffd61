import Synchronization

/// Bounds how many tests run daemons at a time, so that each gets enough of the machine for its deadlines.
final class Stage: Sendable {
    private struct State {
        var taken = 0
        var waiters: [(size: Int, continuation: CheckedContinuation<Void, Never>)] = []
    }

    private static let size = 5
    private static let shared = Stage()
    private let state = Mutex(State())

    /// Runs `body` when there is room; `alone` means without any other test, for tests that measure time.
    static func with<Value>(alone: Bool = false, _ body: () async throws -> Value) async rethrows -> Value {
        let size = alone ? size : 1
        await shared.enter(size)
        defer { shared.leave(size) }
        return try await body()
    }

    private func enter(_ size: Int) async {
        await withCheckedContinuation { continuation in
            let isFree = state.withLock { state in
                // In turn, so that a test that needs the whole stage gets it eventually.
                guard state.waiters.isEmpty, state.taken + size <= Self.size else {
                    state.waiters.append((size, continuation))
                    return false
                }
                state.taken += size
                return true
            }
            if isFree { continuation.resume() }
        }
    }

    private func leave(_ size: Int) {
        let admitted = state.withLock { state in
            state.taken -= size
            var admitted: [CheckedContinuation<Void, Never>] = []
            while let next = state.waiters.first, state.taken + next.size <= Self.size {
                state.taken += next.size
                admitted.append(state.waiters.removeFirst().continuation)
            }
            return admitted
        }
        for continuation in admitted { continuation.resume() }
    }
}
