import Glibc

/// Reads files that other users may have made: only regular ones, up to a limit.
package enum RegularFile {
    package enum Failure: Error {
        case missing
        case unreadable
        case tooLong
    }

    /// All bytes of the file at `path`, at most `limit`. Blocks.
    package static func contents(of path: String, atMost limit: Int) throws(Failure) -> [UInt8] {
        // Otherwise, opening a FIFO would wait for a writer.
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard file >= 0 else { throw errno == ENOENT ? .missing : .unreadable }
        defer { close(file) }
        var status = stat()
        guard fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { throw .unreadable }
        guard status.st_size <= limit else { throw .tooLong }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 8192)
        // The file may have grown since.
        while bytes.count <= limit {
            let count = read(file, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw .unreadable }
            if count == 0 { return bytes }
            bytes += buffer[..<count]
        }
        throw .tooLong
    }
}
