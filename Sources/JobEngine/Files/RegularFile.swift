import DataSources
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
        guard let all = try? FileOperations.real.read(status.st_size, from: file, at: 0) else { throw .unreadable }
        return all
    }
}
