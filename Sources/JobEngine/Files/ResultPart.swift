import DataSources
import SystemPackage

/// A part of a result or of another long text.
package struct ResultPart: Sendable, Hashable {
    package let bytes: [UInt8]
    /// The size of the whole in bytes.
    package let size: Int

    /// At most `length` bytes of `text` from `offset` on.
    package init(of text: [UInt8], offset: Int, length: Int) {
        size = text.count
        bytes = Array(text.dropFirst(max(0, offset)).prefix(max(0, length)))
    }

    /// At most `length` bytes of an open file of `size` bytes from `offset` on; throws if it is shorter. Blocks.
    init(of file: Int32, size: Int, offset: Int, length: Int, by files: FileOperations) throws(Errno) {
        self.size = size
        let offset = min(max(0, offset), size)
        let length = min(max(0, length), size - offset)
        var failure: Errno?
        bytes = [UInt8](unsafeUninitializedCapacity: length) { buffer, count in
            do throws(Errno) {
                let room = UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(buffer)[..<length])
                count = try files.fill(room, from: file, at: Int64(offset))
            } catch {
                failure = error
            }
        }
        if let failure { throw failure }
        guard bytes.count == length else { throw Errno.ioError }
    }
}
