import JobModel
import JobProtocol

/// What is going on over one connection: which calls wait for an answer, and whether it is open.
///
/// States: `open` and `closed`, which is terminal. No event is invalid: what comes after the end is refused or ignored.
/// `Waiter` is what gets an answer.
struct Conversation<Waiter> {
    /// What the connection has to do next.
    enum Action {
        /// Give an answer to its waiter.
        case answer(Waiter, Result<JSON, JobClientError>)
        case deliver(JobEvent)
        /// Close the socket and end the notifications; nil where that was asked for by this side.
        case end(JobClientError?)
    }

    private struct Call {
        /// Nil once nobody waits any more; the answer is then dropped.
        var waiter: Waiter?
        let length: Int
    }

    private enum State {
        case open
        case closed(JobClientError)
    }

    private let limit: Int
    private var state = State.open
    private var calls: [Int: Call] = [:]

    /// A conversation in which at most `limit` calls wait at a time.
    init(limit: Int) {
        self.limit = limit
    }

    /// Admits a call whose request is `length` bytes long. It may be sent unless an action comes back.
    mutating func call(_ id: Int, length: Int, waiter: Waiter) -> Action? {
        if case .closed(let error) = state { return .answer(waiter, .failure(error)) }
        guard calls.count < limit else {
            return .answer(
                waiter,
                .failure(
                    JobClientError(
                        .tooManyCalls, "\(limit) calls of this connection wait for an answer; let some come first.")))
        }
        calls[id] = Call(waiter: waiter, length: length)
        return nil
    }

    /// Gives up waiting for the answer to call `id`.
    mutating func abandon(_ id: Int) -> Action? {
        guard let waiter = calls[id]?.waiter else { return nil }
        calls[id]?.waiter = nil
        return .answer(
            waiter,
            .failure(JobClientError(.cancelled, "The task that made the call was cancelled before its answer came.")))
    }

    /// Handles a line that the daemon sent.
    mutating func receive(_ frame: LineFramer.Frame) -> [Action] {
        guard case .open = state else { return [] }
        guard case .line(let bytes) = frame else { return violate("it sent a line longer than this client takes") }
        let message: ServerMessage
        do {
            message = try ServerMessage(bytes)
        } catch {
            return violate(error.reason)
        }
        switch message {
        case .answer(let id, let result): return answered(id, result.mapError(JobClientError.init))
        case .notification(let method, let params):
            // A method of a later version is ignored.
            guard let method = JobNotification.Method(rawValue: method) else { return [] }
            guard let event = JobEvent(method, params, size: bytes.count) else {
                return violate("a notification \(method.rawValue) lacks a member")
            }
            return [.deliver(event)]
        case .batch: return violate("it answered a batch that was never sent")
        }
    }

    private mutating func answered(_ id: JSON, _ result: Result<JSON, JobClientError>) -> [Action] {
        if id.isNull, case .failure(let error) = result { return failed(error) }
        guard let number = id.int, let call = calls.removeValue(forKey: number) else {
            return violate("it answered a call that was never made")
        }
        return call.waiter.map { [.answer($0, result)] } ?? []
    }

    /// An error about no call in particular.
    ///
    /// Of the waiting calls the longest is too long whenever one is, so that one gets the error about length.
    private mutating func failed(_ error: JobClientError) -> [Action] {
        if error.rpc?.kind == "line-too-long", let longest = calls.max(by: { $0.value.length < $1.value.length })?.key {
            return calls.removeValue(forKey: longest)?.waiter.map { [.answer($0, .failure(error))] } ?? []
        }
        return end(error)
    }

    private mutating func violate(_ reason: String) -> [Action] {
        end(
            JobClientError(
                .protocolViolation, "The daemon does not keep to the protocol: \(reason). Is it another version?"))
    }

    /// Ends the conversation because of `error`, or because this side wants to.
    mutating func end(_ error: JobClientError?) -> [Action] {
        guard case .open = state else { return [] }
        let reason = error ?? .closedHere
        state = .closed(reason)
        let waiters = calls.sorted { $0.key < $1.key }.compactMap(\.value.waiter)
        calls = [:]
        return waiters.map { .answer($0, .failure(reason)) } + [.end(error)]
    }
}
