package import DataSources
import Glibc
import SystemPackage

/// Reads files that other users may have made: only regular ones, up to a limit.
package enum RegularFile {
    /// All bytes of the file at `path`; throws `fileTooLarge` beyond `limit`. Blocks.
    package static func contents(of path: String, atMost limit: Int) throws(FileOperations.Failure) -> [UInt8] {
        // Otherwise, opening a FIFO would wait for a writer.
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard file >= 0 else { throw Errno(rawValue: errno) }
        defer { close(file) }
        let status = try FileOperations.real.statusOfOpen(file)
        guard status.isRegular else { throw .invalidArgument }
        guard status.size <= limit else { throw .fileTooLarge }
        return try FileOperations.real.read(Int(status.size), from: file, at: 0)
    }
}
