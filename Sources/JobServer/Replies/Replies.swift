import JobModel
import JobProtocol
import Synchronization

/// Gathers the answers to the calls of one line and sends them together: one answer, or the array of a batch's.
///
/// The answers come one by one and in any order, from other threads too. Those of submissions that have a line each come
/// together instead, and go past it: ``SubmitReplies`` writes them without an object for each line.
///
/// Both are bounded. An answer of a batch that does not fit becomes a refusal, for which there is always room; after
/// the first one no more calls of the batch are to be carried out.
final class Replies: Sendable {
    private struct State {
        var missing: Int
        var answers: [[UInt8]] = []
        /// Bytes of the answers with the brackets and commas around them.
        var size = 2
        /// Bytes of the missing answers if all of them are refusals.
        var reserved: Int
        var isFull = false
        /// Bytes that are counted for a batch's answers: at first what they take at least.
        var charged = 0
        var afterwards: [@Sendable () -> Void] = []
    }

    private let state: Mutex<State>
    private let isBatch: Bool
    private let limit: Int
    private let outbox: Outbox
    private let budget: UserBudget
    private let sent: @Sendable () -> Void

    /// An upper bound of the size of a refusal for lack of room, without its id.
    private static let refusal = 256

    /// The refusal for lack of room.
    static let full = ProtocolError(
        .busy, "The answers of this batch leave no room for this one; ask again in a call of its own.",
        [JSONObject.Member(name: "retryAfter", value: 0)])

    /// What a batch of so many calls is answered with at least, in bytes, with ids that take `ids` bytes.
    static func least(calls: Int, ids: Int) -> Int { calls * refusal + ids }

    /// `sent` is called once every call is answered. The line takes at most `limit` bytes without its end, an answer alone
    /// at most ``Answer/mostBytes``; the ids of a batch's calls take `ids` bytes. What a batch's answers take at least was
    /// admitted before.
    init(
        calls: Int, isBatch: Bool, ids: Int = 0, limit: Int = .max, outbox: Outbox,
        budget: UserBudget = UserBudget(limit: .max),
        sent: @escaping @Sendable () -> Void
    ) {
        let least = Self.least(calls: calls, ids: ids)
        state = Mutex(State(missing: calls, reserved: least, charged: isBatch ? least : 0))
        self.isBatch = isBatch
        self.limit = limit
        self.outbox = outbox
        self.budget = budget
        self.sent = sent
    }

    deinit { budget.unregister(state.withLock(\.charged)) }

    /// Whether an answer found no room, so that nothing more is to be carried out.
    var isFull: Bool { state.withLock(\.isFull) }

    /// The most bytes that the result of a call may take.
    func room(for id: JSON?) -> Int {
        let alone = roomOutsideBatch(for: id)
        guard isBatch else { return alone }
        let left = state.withLock { limit - $0.size - $0.reserved + Self.refusal - 1 }
        return min(alone, left - Answer.envelope)
    }

    /// The most bytes that it may take in an answer with a line of its own.
    func roomOutsideBatch(for id: JSON?) -> Int { min(Answer.mostBytes, limit) - Answer.envelope - (id?.size ?? 0) }

    func succeed(_ id: JSON?, _ result: JSON, afterwards: (@Sendable () -> Void)? = nil) {
        add(id, afterwards) { Answer.success(id: $0, result: result) }
    }

    /// Adds a result that is JSON text.
    func succeed(_ id: JSON?, text: [UInt8], afterwards: (@Sendable () -> Void)? = nil) {
        add(id, afterwards) { Answer.success(id: $0, result: text) }
    }

    /// Adds an answer that is written already, or none for a notification.
    func succeed(_ id: JSON?, answer: [UInt8]?, afterwards: @escaping @Sendable () -> Void) {
        add(id, afterwards) { _ in answer ?? [] }
    }

    func fail(_ id: JSON?, _ error: ProtocolError) {
        add(id, nil) { Answer.failure(id: $0, error: error) }
    }

    /// Whether there is room to keep so many more bytes of a batch's answers, beside refusals of the missing ones.
    private func keeps(_ bytes: Int, _ state: inout State) -> Bool {
        guard bytes <= limit - state.size - state.reserved else { return false }
        let excess = state.size + bytes - state.charged
        if excess > 0 {
            guard budget.registers(excess) else { return false }
            state.charged += excess
        }
        return true
    }

    /// Adds the answer to the call `id`, none for a notification; `afterwards` runs once it is sent.
    private func add(_ id: JSON?, _ afterwards: (@Sendable () -> Void)?, _ write: (JSON) -> [UInt8]) {
        var answer = id.map(write)
        let ownID = id?.size ?? 0
        if let id, let written = answer, written.count > Answer.mostBytes + ownID {
            answer = Answer.failure(
                id: id,
                error: ProtocolError(
                    .busy, "The answer is longer than \(Answer.mostBytes) bytes; ask for less.",
                    [JSONObject.Member(name: "retryAfter", value: 0)]))
        }
        let whole = state.withLock { state -> State? in
            state.missing -= 1
            state.reserved -= Self.refusal + ownID
            if isBatch, let id, let written = answer, !keeps(written.count + 1, &state) {
                state.isFull = true
                answer = Answer.failure(id: id, error: Self.full)
            }
            if let answer {
                state.answers.append(answer)
                state.size += answer.count + 1
            }
            if let afterwards { state.afterwards.append(afterwards) }
            if state.missing > 0 { return nil }
            defer { state.charged = 0 }
            return state
        }
        guard let whole else { return }
        // From here on the outbox counts them.
        budget.unregister(whole.charged)
        if isBatch {
            if !whole.answers.isEmpty {
                outbox.send(
                    answer: [UInt8(ascii: "[")] + whole.answers.joined(separator: [UInt8(ascii: ",")]) + [
                        UInt8(ascii: "]")
                    ])
            }
        } else if let answer = whole.answers.first {
            outbox.send(answer: answer)
        }
        for action in whole.afterwards { action() }
        sent()
    }
}
