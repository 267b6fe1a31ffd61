import Synchronization

/// A flag that several threads set, shared by those who hold it.
final class Flag: Sendable {
    private let isSet = Atomic(false)

    /// Sets it; false where it was set.
    func set() -> Bool {
        isSet.compareExchange(expected: false, desired: true, ordering: .sequentiallyConsistent).exchanged
    }

    func clear() { isSet.store(false, ordering: .sequentiallyConsistent) }
}
