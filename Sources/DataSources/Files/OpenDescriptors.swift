import SystemPackage
import JobModel

/// A file that is open for reading, and its size and type when it was opened.
final class OpenFile: Sendable {
    let descriptor: Int32
    /// For messages.
    let path: String
    let size: Int64
    let isRegular: Bool
    private let files: FileOperations

    /// Owns `descriptor` from here on, and closes it where it throws. Blocks.
    init(descriptor: Int32, path: String, files: FileOperations) throws(Errno) {
        do throws(Errno) {
            let status = try files.statusOfOpen(descriptor)
            size = status.size
            isRegular = status.isRegular
        } catch {
            files.close(descriptor)
            throw error
        }
        self.descriptor = descriptor
        self.path = path
        self.files = files
    }

    deinit {
        files.close(descriptor)
    }
}

/// A directory that is open, so that it stays the same one whatever happens to its path.
final class OpenDirectory: Sendable {
    let descriptor: Int32
    /// For messages and results.
    let path: String
    private let files: FileOperations

    init(descriptor: Int32, path: String, files: FileOperations) {
        self.descriptor = descriptor
        self.path = path
        self.files = files
    }

    deinit {
        files.close(descriptor)
    }
}
