import Synchronization

/// A share of something limited, given back when the last reference to the lease goes away.
package final class Lease: Sendable {
    private let size: Mutex<Int64>
    private let giveBack: @Sendable (Int64) -> Void

    init(_ size: Int64, giveBack: @escaping @Sendable (Int64) -> Void) {
        self.size = Mutex(size)
        self.giveBack = giveBack
    }

    deinit { shrink(to: 0) }

    /// Gives back everything beyond `rest`.
    func shrink(to rest: Int64) {
        let surplus = size.withLock { size in
            defer { size = min(size, rest) }
            return size - min(size, rest)
        }
        if surplus > 0 { giveBack(surplus) }
    }
}
