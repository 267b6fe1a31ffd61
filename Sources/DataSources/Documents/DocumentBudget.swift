import DeferredKit
import JobModel
import Synchronization

/// Bounds the memory of all documents that are parsed or whose values are not stored yet: `limits.documents`.
///
/// A document without room waits. Users whose documents take the least memory come first, and none takes more than
/// `perUser`. A document that exceeds a bound is parsed alone.
final class DocumentBudget: Sendable {
    struct Waiter {
        let bytes: Int
        let user: UInt32
        let promise: Promise<Lease, JobError>
    }

    struct State {
        var limit: Int
        var perUser: Int
        var byUser: [UInt32: Int] = [:]
        /// In order of arrival; at most one for each running transfer.
        var waiting: [Waiter] = []

        var used: Int { byUser.values.reduce(0) { $0.saturatingAdding($1) } }
    }

    let state: Mutex<State>

    init(limit: Int, perUser: Int) { state = Mutex(State(limit: limit, perUser: perUser)) }

    func configure(limit: Int, perUser: Int) {
        state.withLock { ($0.limit, $0.perUser) = (limit, perUser) }
        grant()
    }

    func lease(_ bytes: Int, for user: UInt32, _ control: TransferControl) async throws(JobError) -> Lease {
        try await control.wait { promise in
            state.withLock { $0.waiting.append(Waiter(bytes: bytes, user: user, promise: promise)) }
            grant()
        }
    }

    private func release(_ bytes: Int, of user: UInt32) {
        state.withLock { state in
            let left = state.byUser[user, default: bytes] - bytes
            state.byUser[user] = left > 0 ? left : nil
        }
        grant()
    }

    private func grant() {
        while let waiter = next() {
            // If the waiter has given up, dropping the lease here returns the room.
            waiter.promise.succeed(
                Lease(Int64(waiter.bytes)) { [self, user = waiter.user] in release(Int($0), of: user) })
        }
    }

    /// The next waiter that has room, which counts from now on.
    private func next() -> Waiter? {
        state.withLock { state in
            state.waiting.removeAll { $0.promise.deferred.isResolved }
            func used(_ waiter: Waiter) -> Int { state.byUser[waiter.user, default: 0] }
            let first = state.waiting.indices.filter { index in
                let used = used(state.waiting[index])
                return used == 0 || used.saturatingAdding(state.waiting[index].bytes) <= state.perUser
            }.min { (used(state.waiting[$0]), $0) < (used(state.waiting[$1]), $1) }
            guard let first,
                state.used == 0 || state.used.saturatingAdding(state.waiting[first].bytes) <= state.limit
            else { return nil }
            let waiter = state.waiting.remove(at: first)
            state.byUser[waiter.user, default: 0] += waiter.bytes
            return waiter
        }
    }

    /// The most memory that a byte of text can need: `0,` is an element of an array with room for twice as many.
    private static let growth = 32

    /// Parses a document; a long one on a file thread, once there is room for its text and values.
    ///
    /// `parse` gives the value and its cost in memory, for which room is kept until the result is stored.
    func value(
        of document: BodyFile, _ transfer: Transfer, _ control: TransferControl,
        _ parse: @escaping @Sendable ([UInt8]) throws(JobError) -> (value: JSON, cost: Int)
    ) async throws(JobError) -> JSON {
        if document.isInMemory { return try parse(document.memory).value }
        let most = min(transfer.settings.limits.documentValues, document.size.saturatingMultiplied(by: Self.growth))
        let lease = try await lease(document.size.saturatingAdding(most), for: transfer.owner, control)
        let (value, cost) = try await transfer.ownFiles.run { () throws(JobError) in try parse(document.read()) }
        lease.shrink(to: Int64(cost))
        transfer.context.memory.put(lease)
        return value
    }
}
