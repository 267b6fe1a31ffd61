// Unchecked: no two threads write the same slot, and `moveOut` happens after all writes.
/// One slot for each member of a list, written once by the thread that delivers that member.
@usableFromInline
final class Slots<Element>: @unchecked Sendable {
    @usableFromInline let storage: UnsafeMutableBufferPointer<Element?>

    @inlinable
    init(count: Int) {
        storage = .allocate(capacity: count)
        storage.initialize(repeating: nil)
    }

    deinit {
        storage.deinitialize()
        storage.deallocate()
    }

    @inlinable
    subscript(index: Int) -> Element? {
        get { storage[index] }
        set { storage[index] = newValue }
    }

    /// Moves all values out. Call it once, after every slot was written.
    @inlinable
    func moveOut() -> [Element] {
        Array(unsafeUninitializedCapacity: storage.count) { buffer, count in
            for index in storage.indices {
                buffer.initializeElement(at: index, to: storage[index].unsafelyUnwrapped)
                storage[index] = nil
            }
            count = storage.count
        }
    }
}
