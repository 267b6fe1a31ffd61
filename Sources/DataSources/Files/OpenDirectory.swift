import Glibc
import SystemPackage

/// An open directory, which stays the same one even if its path changes.
package final class OpenDirectory: Sendable {
    package let descriptor: Int32
    private let files: FileOperations

    package init(_ descriptor: Int32, _ files: FileOperations) {
        self.descriptor = descriptor
        self.files = files
    }

    deinit {
        files.close(descriptor)
    }

    /// Opens a directory below this one, through no symbolic link. Blocks.
    func open(_ path: String, flags: Int32 = O_RDONLY) throws(Errno) -> OpenDirectory {
        OpenDirectory(try files.openBeneath(descriptor, path, flags | O_DIRECTORY, 0), files)
    }
}
