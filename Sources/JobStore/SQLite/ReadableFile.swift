import SystemPackage
import JobModel
import Glibc

/// A file that is open for reading, at any offset: a state file before SQLite may touch it, or one of the kernel's.
struct ReadableFile: ~Copyable {
    private let descriptor: Int32
    /// Its length in bytes when it was opened.
    let length: Int

    /// Opens the file, or gives nil where there is none.
    init?(_ path: String) throws(StoreError) {
        descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            guard errno == ENOENT else { throw .unusable(path) }
            return nil
        }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            let isDirectory = status.st_mode & S_IFMT == S_IFDIR
            close(descriptor)
            if isDirectory { errno = EISDIR }
            throw .unusable(path)
        }
        length = Int(status.st_size)
    }

    deinit { close(descriptor) }

    /// Reads `count` bytes from `offset` on, fewer only at the end of the file.
    func read(_ count: Int, at offset: Int, of path: String) throws(StoreError) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        var filled = 0
        while filled < count {
            let more = bytes.withUnsafeMutableBytes { buffer in
                pread(descriptor, buffer.baseAddress.map { $0 + filled }, count - filled, off_t(offset + filled))
            }
            if more < 0 {
                if errno == EINTR { continue }
                throw .unusable(path)
            }
            if more == 0 { break }
            filled += more
        }
        bytes.removeLast(count - filled)
        return bytes
    }
}

extension StoreError {
    /// The file cannot be read, for the reason that the last system call gave.
    static func unusable(_ path: String) -> StoreError {
        StoreError(
            .read, "The file \(path) cannot be read (\(Errno(rawValue: errno))); check its permissions.",
            isLasting: isLasting(errno))
    }
}

extension [UInt8] {
    /// The big-endian number of four bytes at `offset`.
    func bigEndian(at offset: Int) -> UInt32 {
        self[offset..<offset + 4].reduce(0) { $0 << 8 | UInt32($1) }
    }
}
