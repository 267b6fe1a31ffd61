/// Memory for the texts of one statement, so that SQLite does not copy each to the heap. It copies only those that do not fit.
final class BoundTexts {
    private let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)
    private var used = 0

    deinit { room.deallocate() }

    /// A copy of `text` that stays in place until ``removeAll()``; nil if it does not fit.
    func keep(_ text: UnsafeRawBufferPointer) -> UnsafeRawPointer? {
        guard text.count < room.count - used, let start = room.baseAddress?.advanced(by: used) else { return nil }
        // One byte more gives an empty text an address of its own.
        used += text.count + 1
        if let source = text.baseAddress { start.copyMemory(from: source, byteCount: text.count) }
        return UnsafeRawPointer(start)
    }

    /// Frees the memory, to which no statement may be bound any more.
    func removeAll() {
        used = 0
    }
}
