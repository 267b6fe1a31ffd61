import Dispatch
import JobModel
import Synchronization

/// Looks at how much room the disk of the state has: at the start, when jobs are submitted but at most once a second, and
/// each second while it has too little.
///
/// States: idle, looking, and short, in which a timer looks again. It looks on a queue of its own, as the call can
/// block on a slow disk.
final class RoomWatch: Sendable {
    private struct State {
        var minimum: Int64
        var isLooking = false
        var isShort = false
        var nextLook: Int64 = 0
    }

    private static let interval: Int64 = 1_000_000_000

    private let blobs: BlobStore
    private let changed: @Sendable (String?) -> Void
    private let queue = DispatchQueue(label: "deferd.room", qos: .utility)
    private let state: Mutex<State>

    /// `changed` is told why there is too little room, or nil once there is enough again.
    init(
        _ blobs: BlobStore, minimum: Int64, changed: @escaping @Sendable (String?) -> Void
    ) {
        self.blobs = blobs
        state = Mutex(State(minimum: minimum))
        self.changed = changed
    }

    /// Looks for the first time; `changed` was told when it returns.
    func begin() async {
        guard state.withLock({ $0.minimum > 0 }) else { return }
        await withCheckedContinuation { continuation in
            queue.async {
                self.look()
                continuation.resume()
            }
        }
    }

    /// Called when jobs are submitted, with the monotonic time in nanoseconds.
    func submitted(at now: Int64) {
        let isDue = state.withLock { state in
            guard state.minimum > 0, !state.isLooking, !state.isShort, now >= state.nextLook else { return false }
            state.nextLook = now.saturatingAdding(Self.interval)
            state.isLooking = true
            return true
        }
        if isDue { queue.async { self.look() } }
    }

    /// Changes the bound; the next look goes by it.
    func configure(minimum: Int64) { state.withLock { $0.minimum = minimum } }

    private func look() {
        let free = blobs.freeBytes
        let (isShort, wasShort, minimum) = state.withLock { state in
            let wasShort = state.isShort
            state.isShort = free.map { $0 < state.minimum } ?? false
            state.isLooking = false
            return (state.isShort, wasShort, state.minimum)
        }
        if isShort != wasShort {
            changed(isShort ? "\"\(blobs.path)\" has \(free ?? 0) bytes free, less than \(minimum); make room." : nil)
        }
        if isShort { queue.asyncAfter(deadline: .now() + 1) { [weak self] in self?.look() } }
    }
}
