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

/// The memory that the result of a run takes; the engine keeps it until the result is stored.
package final class RunMemory: Sendable {
    private let lease = Mutex<Lease?>(nil)

    package init() {}

    package var isEmpty: Bool { lease.withLock { $0 == nil } }

    func keep(_ lease: Lease) { self.lease.withLock { $0 = lease } }
}
