import Glibc
package import JobModel
package import SystemPackage

/// A copy of the state as it was at one moment, in a file without a name: it is gone once nobody has it any more, however
/// the process ends.
package final class StoreBackup: Sendable {
    /// Bytes of the whole.
    package let size: Int
    private let descriptor: Int32
    private let closed: @Sendable () -> Void
    private let isOver = Flag()

    /// Takes over the file `path`, which loses its name.
    init(takingOver path: String, closed: @escaping @Sendable () -> Void) throws(StoreError) {
        descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else { throw .unusable(path) }
        self.closed = closed
        var status = stat()
        size = fstat(descriptor, &status) == 0 ? Int(status.st_size) : 0
        unlink(path)
    }

    deinit {
        close(descriptor)
        end()
    }

    /// Lets another one be made, also where a read of this one has not let go of it yet.
    package func end() {
        if isOver.set() { closed() }
    }

    /// `length` bytes from `offset` on, as far as there are. Blocks.
    package func read(offset: Int, length: Int) throws(Errno) -> ResultPart {
        let start = min(max(0, offset), size)
        var bytes = [UInt8](repeating: 0, count: min(max(0, length), size - start))
        var filled = 0
        while filled < bytes.count {
            let count = bytes.withUnsafeMutableBytes { buffer in
                pread(descriptor, buffer.baseAddress.map { $0 + filled }, buffer.count - filled, off_t(start + filled))
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw count < 0 ? Errno(rawValue: errno) : .ioError }
            filled += count
        }
        return ResultPart(bytes: bytes, size: size)
    }
}
