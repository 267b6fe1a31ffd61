import SystemPackage
import JobModel

/// A file that is open for reading, and what it was when it was opened.
final class OpenFile: Sendable {
    let descriptor: Int32
    /// For messages.
    let path: String
    let status: FileOperations.Status
    private let files: FileOperations

    /// Owns `descriptor` from here on, and closes it where it throws. Blocks.
    init(descriptor: Int32, path: String, files: FileOperations) throws(Errno) {
        do throws(Errno) {
            status = try files.statusOfOpen(descriptor)
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
package final class OpenDirectory: Sendable {
    package let descriptor: Int32
    /// For messages and results.
    let path: String
    private let files: FileOperations

    package init(descriptor: Int32, path: String, files: FileOperations) {
        self.descriptor = descriptor
        self.path = path
        self.files = files
    }

    deinit {
        files.close(descriptor)
    }
}
