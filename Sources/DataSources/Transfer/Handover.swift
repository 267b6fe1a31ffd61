import Synchronization

/// A value that is taken out once, so that whoever is given this keeps it in memory no longer than it is needed: a source's
/// steps keep what they were made with until they end.
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
