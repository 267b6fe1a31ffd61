import JobModel
import Synchronization

/// Lets the connections of a download write one at a time, the one in front first.
///
/// While more comes in than can be written, the file so grows from its beginning, and its digest is made of bytes that are in
/// memory; otherwise nearly all of them would be read again (row "segments" of the bench, unlimited). A connection that
/// waits for its server is passed over, so a slow one holds up nobody.
final class WriteOrder: Sendable {
    private struct Waiter {
        let offset: Int64
        let delivery: Delivery<Result<Void, JobError>>
    }

    private struct State {
        var isTaken = false
        /// In the order in which they came; at most one for each connection, and those that gave up meanwhile.
        var waiters: [Waiter] = []
        var turns = 0
    }

    /// After so many turns it is that of the connection that has waited longest, so that no server gives up on one that is
    /// not read from.
    private static let fair = 16

    private let state = Mutex(State())

    /// Waits until it is the turn of a connection with bytes for `offset`, which then ends it with ``end(unless:)``; while
    /// `isPaused`, it is nobody's. Throws where the transfer is stopped or cancelled before.
    func begin(
        at offset: Int64, _ control: TransferControl, unless isPaused: () -> Bool
    ) async throws(JobError) {
        let isFree = state.withLock { state in
            guard !state.isTaken, state.waiters.isEmpty, !isPaused() else { return false }
            (state.isTaken, state.turns) = (true, state.turns &+ 1)
            return true
        }
        if isFree { return }
        try await control.wait { delivery in
            state.withLock { $0.waiters.append(Waiter(offset: offset, delivery: delivery)) }
            goOn(unless: isPaused)
        }
    }

    /// Whether the connection whose turn it is has the next one too, with bytes for `offset`.
    func mayGoOn(at offset: Int64, unless isPaused: () -> Bool) -> Bool {
        state.withLock { state in
            state.waiters.removeAll(where: \.delivery.isDelivered)
            let isNext = state.waiters.isEmpty || !isFair(state) && state.waiters.allSatisfy { $0.offset > offset }
            guard isNext, !isPaused() else { return false }
            state.turns &+= 1
            return true
        }
    }

    func end(unless isPaused: () -> Bool) {
        state.withLock { $0.isTaken = false }
        goOn(unless: isPaused)
    }

    /// Begins the next turn, where there is none.
    func goOn(unless isPaused: () -> Bool) {
        while let waiter = next(unless: isPaused), !waiter.delivery.deliver(.success(())) {
            // It has given up meanwhile.
            state.withLock { $0.isTaken = false }
        }
    }

    private func next(unless isPaused: () -> Bool) -> Waiter? {
        state.withLock { state in
            guard !state.isTaken, !state.waiters.isEmpty, !isPaused() else { return nil }
            let first = state.waiters.indices.min { state.waiters[$0].offset < state.waiters[$1].offset }
            guard let index = isFair(state) ? state.waiters.startIndex : first else { return nil }
            (state.isTaken, state.turns) = (true, state.turns &+ 1)
            return state.waiters.remove(at: index)
        }
    }

    private func isFair(_ state: State) -> Bool { state.turns % Self.fair == Self.fair - 1 }
}
