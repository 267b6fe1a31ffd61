import JobModel
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

/// The bytes that are leased of several resources, such as the disk space of users.
final class LeaseBook<Key: Hashable & Sendable>: Sendable {
    private let leased = Mutex<[Key: Int64]>([:])

    /// Leases `size` bytes of a resource that has `room` in all; throws what `refusal` makes of the bytes that others
    /// have if the rest is too little.
    func lease(
        _ size: Int64, of key: Key, within room: Int64, refusal: (_ others: Int64) -> JobError
    ) throws(JobError) -> Lease {
        try leased.withLock { leased throws(JobError) in
            let others = leased[key, default: 0]
            guard others.saturatingAdding(size) <= room else { throw refusal(others) }
            leased[key] = others + size
        }
        return Lease(size) { [self] returned in
            leased.withLock { $0[key] = $0[key].flatMap { $0 > returned ? $0 - returned : nil } }
        }
    }
}
