import Dispatch
import Synchronization

/// Watches the free room on the disk of the state: at the start, at most once a second when jobs are submitted, and every
/// second while there is too little.
///
/// It looks on a queue of its own, as a slow disk may block the call.
final class RoomWatch: Sendable {
    private let blobs: BlobStore
    private let changed: @Sendable (String?) -> Void
    private let queue = DispatchQueue(label: "deferd.room", qos: .utility)
    private let minimum: Atomic<Int64>
    private let isShort = Atomic(false)
    /// When a submission may look again, in monotonic nanoseconds; the end of time while a look follows anyway.
    private let nextLook = Atomic<UInt64>(0)

    /// `changed` is called with the reason why there is too little room, and with nil once there is enough again.
    init(_ blobs: BlobStore, minimum: Int64, changed: @escaping @Sendable (String?) -> Void) {
        self.blobs = blobs
        self.minimum = Atomic(minimum)
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

    /// Called when jobs are submitted.
    func submitted() {
        guard DispatchTime.now().uptimeNanoseconds >= nextLook.load(ordering: .relaxed) else { return }
        if nextLook.exchange(.max, ordering: .relaxed) != .max { queue.async { self.look() } }
    }

    /// Changes the minimum for the next look.
    func configure(minimum: Int64) { self.minimum.store(minimum, ordering: .relaxed) }

    /// Called on the queue.
    private func look() {
        let (free, minimum, next) = (blobs.freeBytes, minimum.load(ordering: .relaxed), DispatchTime.now() + 1)
        let isShort = free.map { $0 < minimum } ?? false
        if self.isShort.exchange(isShort, ordering: .relaxed) != isShort {
            changed(isShort ? "\"\(blobs.path)\" has \(free ?? 0) bytes free, less than \(minimum); make room." : nil)
        }
        nextLook.store(isShort ? .max : next.uptimeNanoseconds, ordering: .relaxed)
        if isShort { queue.asyncAfter(deadline: next) { [weak self] in self?.look() } }
    }
}
