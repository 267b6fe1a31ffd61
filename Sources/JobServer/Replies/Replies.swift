import JobModel
import JobProtocol
import Synchronization

/// Gathers the answers to the calls of one line, and sends them together: one answer, or the array of a batch.
///
/// Answers come in any order, on any thread. An answer of a batch that does not fit becomes a refusal, for which there is
/// always room; after the first refusal, no more calls of the batch are carried out.
final class Replies: Sendable {
    private struct State {
        var missing: Int
        var answers: [[UInt8]] = []
        /// The size of the answers with brackets and commas, in bytes.
        var size = 2
        /// Bytes of the missing answers if all are refusals.
        var reserved: Int
        var isFull = false
        /// Counts the answers of a batch, which may wait for years: at first the least that they take.
        var charge: BudgetCharge?
        var afterwards: [@Sendable () -> Void] = []
    }

    private let state: Mutex<State>
    private let isBatch: Bool
    private let limit: Int
    private let outbox: Outbox
    private let sent: @Sendable () -> Void

    /// An upper bound on the size of a refusal for lack of room, without its id.
    private static let refusal = 256

    static let full = ProtocolError.busy(
        "The answers of this batch leave no room for this one; ask again in a call of its own.", retryAfter: 0)

    /// The least bytes of the answers to a batch.
    static func least(_ calls: [IncomingCall]) -> Int { calls.reduce(0) { $0 + refusal + ($1.id?.size ?? 0) } }

    /// `sent` is called once every call is answered. The line takes at most `limit` bytes without its end, an answer alone at most
    /// ``Answer/mostBytes``. The answers to a batch take at least `least` bytes, which `charge` counts.
    init(
        calls: Int = 1, batch least: Int? = nil, charge: BudgetCharge? = nil, limit: Int = .max, outbox: Outbox,
        sent: @escaping @Sendable () -> Void
    ) {
        state = Mutex(State(missing: calls, reserved: least ?? 0, charge: charge))
        isBatch = least != nil
        self.limit = limit
        self.outbox = outbox
        self.sent = sent
    }

    var isFull: Bool { state.withLock(\.isFull) }

    /// The bytes that the result of a call may take.
    func room(for id: JSON?) -> Int {
        let alone = roomOutsideBatch(for: id)
        guard isBatch else { return alone }
        let left = state.withLock { limit - $0.size - $0.reserved + Self.refusal - 1 }
        return min(alone, left - Answer.envelope)
    }

    /// The bytes that the result may take in a line of its own.
    func roomOutsideBatch(for id: JSON?) -> Int { min(Answer.mostBytes, limit) - Answer.envelope - (id?.size ?? 0) }

    func fail(_ id: JSON?, _ error: ProtocolError) {
        succeed(id, answer: id.map { Answer.failure(id: $0, error: error) })
    }

    /// Adds the answer to the call `id`, nil for a notification; `afterwards` runs once it is sent.
    func succeed(_ id: JSON?, answer: [UInt8]?, afterwards: (@Sendable () -> Void)? = nil) {
        var answer = answer
        let ownID = id?.size ?? 0
        if let id, let written = answer, written.count > Answer.mostBytes + ownID {
            answer = Answer.failure(
                id: id,
                error: .busy("The answer is longer than \(Answer.mostBytes) bytes; ask for less.", retryAfter: 0))
        }
        let whole = state.withLock { state -> State? in
            state.missing -= 1
            if isBatch { state.reserved -= Self.refusal + ownID }
            if isBatch, let id, let written = answer, !keeps(written.count + 1, state) {
                state.isFull = true
                answer = Answer.failure(id: id, error: Self.full)
            }
            if let answer {
                state.answers.append(answer)
                state.size += answer.count + 1
            }
            if let afterwards { state.afterwards.append(afterwards) }
            if state.missing > 0 { return nil }
            // The outbox counts the answers from here on.
            defer { state.charge = nil }
            return state
        }
        guard let whole else { return }
        if !isBatch {
            if let answer = whole.answers.first { outbox.send(answer: answer) }
        } else if !whole.answers.isEmpty {
            outbox.send(answer: Array("[".utf8) + whole.answers.joined(separator: ",".utf8) + Array("]".utf8))
        }
        for action in whole.afterwards { action() }
        sent()
    }

    /// Whether there is room for so many more bytes, beside refusals of the missing answers.
    private func keeps(_ bytes: Int, _ state: State) -> Bool {
        bytes <= limit - state.size - state.reserved
            && state.charge?.resize(to: state.size + state.reserved + bytes) ?? true
    }
}
