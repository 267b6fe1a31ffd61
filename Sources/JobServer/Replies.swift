import JobModel
import JobProtocol
import Synchronization

/// Gathers the answers to the calls of one line and sends them together: one answer, or the array of a batch's.
final class Replies: Sendable {
    private struct State {
        var missing: Int
        var answers: [[UInt8]] = []
        var afterwards: [@Sendable () -> Void] = []
    }

    private let state: Mutex<State>
    private let isBatch: Bool
    private let outbox: Outbox
    private let sent: @Sendable () -> Void

    /// `sent` is called once every call is answered.
    init(calls: Int, isBatch: Bool, outbox: Outbox, sent: @escaping @Sendable () -> Void) {
        state = Mutex(State(missing: calls))
        self.isBatch = isBatch
        self.outbox = outbox
        self.sent = sent
    }

    func succeed(_ id: JSON?, _ result: JSON, afterwards: (@Sendable () -> Void)? = nil) {
        add(id.map { Answer.success(id: $0, result: result) }, afterwards)
    }

    /// Takes an answer that is written already, or none for a notification.
    func succeed(answer: [UInt8]?, afterwards: @escaping @Sendable () -> Void) {
        add(answer, afterwards)
    }

    func fail(_ id: JSON?, _ error: ProtocolError) {
        add(id.map { Answer.failure(id: $0, error: error) }, nil)
    }

    /// Takes one answer, or none for a notification; `afterwards` runs behind the answer.
    private func add(_ answer: [UInt8]?, _ afterwards: (@Sendable () -> Void)?) {
        let whole = state.withLock { state -> State? in
            state.missing -= 1
            if let answer { state.answers.append(answer) }
            if let afterwards { state.afterwards.append(afterwards) }
            return state.missing == 0 ? state : nil
        }
        guard let whole else { return }
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
