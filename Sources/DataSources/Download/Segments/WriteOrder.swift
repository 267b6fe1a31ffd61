import JobModel
import NIOCore
import Synchronization

/// Lets the connections of a download write one at a time, the one in front first.
///
/// While more comes in than can be written, the file so grows from its beginning, and its digest is made of bytes that are in
/// memory; otherwise nearly all of them would be read again (row "segments" of the bench, unlimited). A connection that
/// waits for its server is passed over, so a slow one holds up nobody.
final class WriteOrder: Sendable {
    private struct Waiter {
        let offset: Int64
        let since: NIODeadline
        let delivery: Delivery<Result<Void, JobError>>
    }

    private struct State {
        var isTaken = false
        /// In the order in which they came; at most one for each connection, and those that gave up meanwhile.
        var waiters: [Waiter] = []
    }

    /// After so long it is a connection's turn whatever the others have, so that no server gives up on one that is not read
    /// from. Each such turn is of bytes that are read again for the digest, so there are few.
    static let patience = TimeAmount.seconds(1)

    private let now: @Sendable () -> NIODeadline
    private let state = Mutex(State())

    init(now: @escaping @Sendable () -> NIODeadline = NIODeadline.now) { self.now = now }

    /// Whether it is somebody's turn.
    var isTaken: Bool { state.withLock(\.isTaken) }

    /// Waits until it is the turn of a connection with bytes for `offset`, which then ends it with ``end()``. Throws where the
    /// transfer is stopped or cancelled before.
    func begin(at offset: Int64, _ control: TransferControl) async throws(JobError) {
        let isFree = state.withLock { state in
            guard !state.isTaken, state.waiters.isEmpty else { return false }
            state.isTaken = true
            return true
        }
        if isFree { return }
        let since = now()
        try await control.wait { delivery in
            state.withLock { $0.waiters.append(Waiter(offset: offset, since: since, delivery: delivery)) }
            goOn()
        }
    }

    /// Whether the connection whose turn it is has the next one too, with bytes for `offset`.
    func mayGoOn(at offset: Int64) -> Bool {
        state.withLock { state in
            state.waiters.removeAll(where: \.delivery.isDelivered)
            return !isOverdue(state) && state.waiters.allSatisfy { $0.offset > offset }
        }
    }

    func end() {
        state.withLock { $0.isTaken = false }
        goOn()
    }

    /// Begins the next turn, where there is none.
    private func goOn() {
        while let waiter = next(), !waiter.delivery.deliver(.success(())) {
            // It has given up meanwhile.
            state.withLock { $0.isTaken = false }
        }
    }

    private func next() -> Waiter? {
        state.withLock { state in
            guard !state.isTaken, !state.waiters.isEmpty else { return nil }
            let first = state.waiters.indices.min { state.waiters[$0].offset < state.waiters[$1].offset }
            guard let index = isOverdue(state) ? state.waiters.startIndex : first else { return nil }
            state.isTaken = true
            return state.waiters.remove(at: index)
        }
    }

    private func isOverdue(_ state: State) -> Bool {
        state.waiters.first.map { now() - $0.since >= Self.patience } ?? false
    }
}
