import Synchronization

/// A value that is taken out once, so that its holder does not keep it in memory longer than needed: the steps of a source
/// retain their arguments until they end.
final class Handover<Value: Sendable>: Sendable {
    private let value: Mutex<Value?>

    init(_ value: Value? = nil) { self.value = Mutex(value) }

    func put(_ value: Value) { self.value.withLock { $0 = value } }

    /// What `body` makes of the value, which stays.
    func look<Result: Sendable>(_ body: (Value?) -> Result) -> Result { value.withLock { body($0) } }

    /// The value; nil where there was none, or from the second time on.
    func take() -> Value? {
        value.withLock { value in
            defer { value = nil }
            return value
        }
    }
}
