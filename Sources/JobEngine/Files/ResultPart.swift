/// A part of the JSON of a result.
package struct ResultPart: Sendable, Hashable {
    package let bytes: [UInt8]
    /// Bytes of the whole.
    package let size: Int

    package init(bytes: [UInt8], size: Int) {
        self.bytes = bytes
        self.size = size
    }

    /// `length` bytes of `text` from `offset` on, as far as there are.
    package init(of text: [UInt8], offset: Int, length: Int) {
        let start = min(max(0, offset), text.count)
        self.init(bytes: Array(text[start..<(start + min(max(0, length), text.count - start))]), size: text.count)
    }
}
