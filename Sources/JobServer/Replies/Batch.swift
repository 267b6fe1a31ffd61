import JobModel
import JobProtocol
import Synchronization

/// Gathers the answers to the calls of a batch, and sends them as one array.
///
/// Answers come in any order, on any thread. One that does not fit becomes a refusal, for which there is always room; after
/// the first refusal, no more calls of the batch are carried out.
final class Batch: Sendable {
    private struct State {
        /// The array so far, with a comma behind each answer.
        var text = Array("[".utf8)
        /// Bytes of the missing answers if all are refusals; 0 once none is missing.
        var reserved: Int
        var isFull = false
        /// Counts the answers, which may wait for years; nil once they are sent.
        var charge: BudgetCharge?
        var afterwards: [@Sendable () -> Void] = []
    }

    private let state: Mutex<State>
    private let limit: Int
    private let outbox: Outbox

    /// An upper bound on the size of a refusal for lack of room, without its id.
    private static let refusal = 256

    static let full = ProtocolError.busy(
        "The answers of this batch leave no room for this one; ask again in a call of its own.", retryAfter: 0)

    /// Reserves room for refusals of all calls. The line takes less than `limit` bytes without its end, as a longer one would
    /// close the connection.
    init(_ calls: [IncomingCall], limit: Int, outbox: Outbox, budget: UserBudget) throws(ProtocolError) {
        let least = calls.reduce(0) { $0 + Self.refusal + ($1.request.id?.size ?? 0) }
        guard least + 2 < limit else {
            throw .busy("The batch has more calls than \(limit) bytes can answer; split it up.", retryAfter: 0)
        }
        let charge = try BudgetCharge(registering: least, in: budget)
        state = Mutex(State(reserved: least, charge: charge))
        self.limit = limit
        self.outbox = outbox
    }

    var isFull: Bool { state.withLock(\.isFull) }

    /// The bytes that the next answer may take besides its id.
    var room: Int { state.withLock { limit - $0.text.count - $0.reserved + Self.refusal - 3 } }

    /// Adds the answer to the call `id`, nil for a notification; `afterwards` runs once all are sent.
    func add(_ answer: [UInt8]?, of id: JSON?, _ afterwards: (@Sendable () -> Void)?) {
        let whole = state.withLock { state -> State? in
            state.reserved -= Self.refusal + (id?.size ?? 0)
            if let afterwards { state.afterwards.append(afterwards) }
            if let id, var answer {
                let size = state.text.count + state.reserved + answer.count + 2
                if size >= limit || state.charge?.resize(to: size) == false {
                    state.isFull = true
                    answer = Answer.failure(id: id, error: Self.full)
                }
                state.text += answer
                state.text.append(UInt8(ascii: ","))
            }
            if state.reserved > 0 { return nil }
            state.text[state.text.count - 1] = UInt8(ascii: "]")
            // The outbox counts the answers from here on.
            defer { (state.text, state.charge) = ([], nil) }
            return state
        }
        guard let whole else { return }
        if whole.text.count > 1 { outbox.send(answer: whole.text) }
        for action in whole.afterwards { action() }
    }
}
