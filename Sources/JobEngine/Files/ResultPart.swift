/// A part of a result or of another long text.
package struct ResultPart: Sendable, Hashable {
    package let bytes: [UInt8]
    /// The size of the whole in bytes.
    package let size: Int

    /// At most `length` bytes from `offset` on of a text of `size` bytes, which `load` gives.
    package init<Failure>(
        of size: Int, offset: Int, length: Int, _ load: (_ count: Int, _ offset: Int64) throws(Failure) -> [UInt8]
    ) throws(Failure) {
        self.size = size
        let offset = min(max(0, offset), size)
        bytes = try load(min(max(0, length), size - offset), Int64(offset))
    }
}
