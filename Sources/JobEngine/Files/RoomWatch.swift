import Dispatch
import JobModel
import Synchronization

/// Watches the free room on the disk of the state: at the start, at most once a second when jobs are submitted, and every
/// second while there is too little.
///
/// It looks on a queue of its own, as a slow disk may block the call.
final class RoomWatch: Sendable {
    private struct State {
        var minimum: Int64
        var isShort = false
        /// When a submission may look again, in monotonic nanoseconds; the end of time while a look follows anyway.
        var nextLook: UInt64 = 0
    }

    private let blobs: BlobStore
    private let changed: @Sendable (String?) -> Void
    private let queue = DispatchQueue(label: "deferd.room", qos: .utility)
    private let state: Mutex<State>

    /// `changed` is called with the reason why there is too little room, and with nil once there is enough again.
    init(_ blobs: BlobStore, minimum: Int64, changed: @escaping @Sendable (String?) -> Void) {
        self.blobs = blobs
        state = Mutex(State(minimum: minimum))
        self.changed = changed
    }

    /// Looks for the first time; returns after `changed` was called.
    func begin() async {
        await withCheckedContinuation { continuation in
            queue.async {
                self.look()
                continuation.resume()
            }
        }
    }

    /// Called when jobs are submitted, with the monotonic time in nanoseconds.
    func submitted(at now: UInt64) {
        let isDue = state.withLock { state in
            guard now >= state.nextLook else { return false }
            state.nextLook = .max
            return true
        }
        if isDue { queue.async { self.look() } }
    }

    /// Changes the minimum for the next look.
    func configure(minimum: Int64) { state.withLock { $0.minimum = minimum } }

    private func look() {
        let free = blobs.freeBytes
        let next = DispatchTime.now() + 1
        let (isShort, wasShort, minimum) = state.withLock { state in
            let wasShort = state.isShort
            state.isShort = free.map { $0 < state.minimum } ?? false
            state.nextLook = state.isShort ? .max : next.uptimeNanoseconds
            return (state.isShort, wasShort, state.minimum)
        }
        if isShort != wasShort {
            changed(isShort ? "\"\(blobs.path)\" has \(free ?? 0) bytes free, less than \(minimum); make room." : nil)
        }
        if isShort { queue.asyncAfter(deadline: next) { [weak self] in self?.look() } }
    }
}
