import Synchronization

/// A value for one waiter; the first delivery counts, later ones are dropped.
final class Delivery<Value: Sendable>: Sendable {
    private enum State {
        case open
        case awaited(CheckedContinuation<Value, Never>)
        case delivered(Value)
        case consumed
    }

    private let state = Mutex(State.open)

    /// Whether a value is there, so that another one is not worth its work.
    var isDelivered: Bool {
        state.withLock { state in
            switch state {
            case .open, .awaited: false
            case .delivered, .consumed: true
            }
        }
    }

    /// Delivers the value; false where one was delivered before.
    @discardableResult
    func deliver(_ value: Value) -> Bool {
        let (isFirst, continuation) = state.withLock { state -> (Bool, CheckedContinuation<Value, Never>?) in
            switch state {
            case .open:
                state = .delivered(value)
                return (true, nil)
            case .awaited(let continuation):
                state = .consumed
                return (true, continuation)
            case .delivered, .consumed: return (false, nil)
            }
        }
        continuation?.resume(returning: value)
        return isFirst
    }

    /// Waits for the value. Called once.
    func value() async -> Value {
        await withCheckedContinuation { continuation in
            let value = state.withLock { state -> Value? in
                switch state {
                case .open:
                    state = .awaited(continuation)
                    return nil
                case .delivered(let value):
                    state = .consumed
                    return value
                case .awaited, .consumed: preconditionFailure("One waits for a delivery, once.")
                }
            }
            if let value { continuation.resume(returning: value) }
        }
    }
}
