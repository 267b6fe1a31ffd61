// Unchecked: no two threads write the same place, and `take` happens after all of them wrote.
/// One place for each member of a list, written once by whoever delivers that member.
@usableFromInline
final class Slots<Element>: @unchecked Sendable {
    @usableFromInline let places: UnsafeMutableBufferPointer<Element?>

    @inlinable
    init(count: Int) {
        places = .allocate(capacity: count)
        places.initialize(repeating: nil)
    }

    deinit {
        places.deinitialize()
        places.deallocate()
    }

    @inlinable
    subscript(index: Int) -> Element? {
        get { places[index] }
        set { places[index] = newValue }
    }

    /// Moves everything out. Call it once, when every place was written.
    @inlinable
    func take() -> [Element] {
        Array(unsafeUninitializedCapacity: places.count) { buffer, count in
            for index in places.indices {
                buffer.initializeElement(at: index, to: places[index].unsafelyUnwrapped)
                places[index] = nil
            }
            count = places.count
        }
    }
}
