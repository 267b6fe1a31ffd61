import Synchronization

/// Bounds how many tests run daemons at a time, so that each gets enough of the machine for its deadlines.
enum Stage {
    private struct State {
        var room = 5
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    private static let state = Mutex(State())

    /// Runs `body` when there is room.
    static func with<Value>(_ body: () async throws -> Value) async rethrows -> Value {
        await withCheckedContinuation { continuation in
            let isFree = state.withLock { state in
                guard state.room > 0 else {
                    state.waiters.append(continuation)
                    return false
                }
                state.room -= 1
                return true
            }
            if isFree { continuation.resume() }
        }
        defer { leave() }
        return try await body()
    }

    private static func leave() {
        let next = state.withLock { state -> CheckedContinuation<Void, Never>? in
            guard state.waiters.isEmpty else { return state.waiters.removeFirst() }
            state.room += 1
            return nil
        }
        next?.resume()
    }
}
