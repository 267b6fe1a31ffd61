import Synchronization

/// A value that is taken out once, so that a transfer does not keep it in memory until its end.
package final class Handover<Value: Sendable>: Sendable {
    private let value: Mutex<Value?>

    package init(_ value: Value? = nil) { self.value = Mutex(value) }

    package func put(_ value: Value) { self.value.withLock { $0 = value } }

    func look<Result: Sendable>(_ body: (Value?) -> Result) -> Result { value.withLock { body($0) } }

    /// Takes the value; nil if there was none, or from the second call on.
    package func take() -> Value? { value.withLock { $0.take() } }
}
