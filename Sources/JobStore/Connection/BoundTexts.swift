/// Room for the texts of one statement, which SQLite reads where they are instead of copying each to the heap.
///
/// States: empty, and in use until ``removeAll()``. A text that does not fit is left to SQLite.
final class BoundTexts {
    private let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)
    private var used = 0

    deinit { room.deallocate() }

    /// A copy of `text` that stays where it is, or nil where there is no room for it.
    func keep(_ text: UnsafeRawBufferPointer) -> UnsafeRawPointer? {
        guard text.count < room.count - used, let start = room.baseAddress?.advanced(by: used) else { return nil }
        // One byte more, so that an empty text also has an address of its own.
        used += text.count + 1
        if let source = text.baseAddress { start.copyMemory(from: source, byteCount: text.count) }
        return UnsafeRawPointer(start)
    }

    /// Gives the room back; no statement may be bound to a text in it any more.
    func removeAll() {
        used = 0
    }
}
