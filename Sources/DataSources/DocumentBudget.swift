import DeferredKit
import JobModel
import Synchronization

/// Bounds what all documents that are parsed, or whose values are not stored yet, take in memory: `limits.documents`.
///
/// A document for which there is no room waits. Next comes the longest waiting one of the user whose documents take
/// least; no user's take more than `perUser`. A document that is larger than the bound is parsed while no other is.
final class DocumentBudget: Sendable {
    struct Waiter {
        let bytes: Int
        let user: UInt32
        let promise: Promise<DocumentLease, JobError>
    }

    struct State {
        var limit: Int
        var perUser: Int
        var used = 0
        var byUser: [UInt32: Int] = [:]
        /// In the order of arrival; at most one for each running transfer.
        var waiting: [Waiter] = []
    }

    let state: Mutex<State>

    init(limit: Int, perUser: Int) {
        state = Mutex(State(limit: limit, perUser: perUser))
    }

    /// Changes the bounds; what is leased already stays so.
    func configure(limit: Int, perUser: Int) {
        state.withLock { ($0.limit, $0.perUser) = (limit, perUser) }
        grant()
    }

    /// Room for so many bytes, as soon as there is some.
    func lease(_ bytes: Int, for user: UInt32, _ control: TransferControl) async throws(JobError) -> DocumentLease {
        try await control.wait { promise in
            state.withLock { $0.waiting.append(Waiter(bytes: bytes, user: user, promise: promise)) }
            grant()
        }
    }

    fileprivate func release(_ bytes: Int, of user: UInt32) {
        state.withLock { state in
            state.used -= bytes
            let left = state.byUser[user, default: bytes] - bytes
            state.byUser[user] = left > 0 ? left : nil
        }
        grant()
    }

    private func grant() {
        while let waiter = next() {
            // If the waiter has given up, the lease is dropped here, which returns the room.
            waiter.promise.succeed(DocumentLease(waiter.bytes, of: self, for: waiter.user))
        }
    }

    /// The next who has room, which is counted from now on.
    private func next() -> Waiter? {
        state.withLock { state in
            state.waiting.removeAll { $0.promise.deferred.isResolved }
            func used(_ waiter: Waiter) -> Int { state.byUser[waiter.user, default: 0] }
            func isAllowed(_ waiter: Waiter) -> Bool {
                used(waiter) == 0 || used(waiter).saturatingAdding(waiter.bytes) <= state.perUser
            }
            let first = state.waiting.indices.filter { isAllowed(state.waiting[$0]) }
                .min { (used(state.waiting[$0]), $0) < (used(state.waiting[$1]), $1) }
            guard let first,
                state.used == 0 || state.used.saturatingAdding(state.waiting[first].bytes) <= state.limit
            else { return nil }
            let waiter = state.waiting.remove(at: first)
            state.used += waiter.bytes
            state.byUser[waiter.user, default: 0] += waiter.bytes
            return waiter
        }
    }
}

extension DocumentBudget {
    /// The most that a byte of text becomes in memory: `0,` is one of an array that has room for twice as many.
    private static let growth = 32

    /// Has a text of `size` bytes parsed, whose values take at most `budget` bytes, once there is room for both. `parse` gives the
    /// value and what it takes, for which there is room until the result is stored.
    func value(
        ofSize size: Int, within budget: Int, for context: SourceContext, on queue: FileQueue,
        _ control: TransferControl, _ parse: @escaping @Sendable () throws(JobError) -> (value: JSON, cost: Int)
    ) async throws(JobError) -> JSON {
        let most = min(budget, size.saturatingMultiplied(by: Self.growth))
        let lease = try await lease(size.saturatingAdding(most), for: context.owner, control)
        let (value, cost) = try await queue.run(parse)
        lease.shrink(to: cost)
        context.memory.keep(lease)
        return value
    }
}

/// Room in memory that a document has until the last reference to the lease goes away.
package final class DocumentLease: Sendable {
    private let budget: DocumentBudget
    private let user: UInt32
    private let bytes: Mutex<Int>

    fileprivate init(_ bytes: Int, of budget: DocumentBudget, for user: UInt32) {
        self.bytes = Mutex(bytes)
        self.budget = budget
        self.user = user
    }

    deinit { shrink(to: 0) }

    /// Gives back all room beyond `size`.
    func shrink(to size: Int) {
        let freed = bytes.withLock { bytes in
            defer { bytes = min(bytes, size) }
            return bytes - min(bytes, size)
        }
        if freed > 0 { budget.release(freed, of: user) }
    }
}

/// What the result of a run takes in memory, kept by the engine until it is stored.
package final class RunMemory: Sendable {
    private let lease = Mutex<DocumentLease?>(nil)

    package init() {}

    package var isEmpty: Bool { lease.withLock { $0 == nil } }

    func keep(_ lease: DocumentLease) { self.lease.withLock { $0 = lease } }
}
