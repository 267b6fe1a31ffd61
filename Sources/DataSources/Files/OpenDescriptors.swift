import SystemPackage
import Glibc
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

    /// Opens the file `name` of a directory for reading, for a caller who may read it; nil where it is no regular file. Blocks.
    convenience init?(
        regular name: String, in directory: OpenDirectory, _ path: DownloadPath, files: FileOperations
    ) throws(Errno) {
        // Its type is looked at first, as merely opening a device can have an effect.
        let status = try files.status(directory.descriptor, name)
        guard status.isRegular else { return nil }
        let descriptor = try files.openBeneath(directory.descriptor, name, O_RDONLY | O_NONBLOCK, 0)
        try self.init(descriptor: descriptor, path: path.absolute(name), files: files)
        if let rights = CallerRights(of: path, files), try !rights.permit(.read, on: descriptor) {
            throw Errno.permissionDenied
        }
        guard self.status.isRegular, self.status.identity == status.identity else { return nil }
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
