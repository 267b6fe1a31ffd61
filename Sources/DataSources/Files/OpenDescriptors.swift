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
    /// Where it is closed; the thread that gives it up last may be anybody's.
    private let queue: FileQueue

    /// Owns `descriptor` from here on, and closes it where it throws. Blocks.
    init(descriptor: Int32, path: String, files: FileOperations, queue: FileQueue) throws(Errno) {
        do throws(Errno) {
            status = try files.statusOfOpen(descriptor)
        } catch {
            files.close(descriptor)
            throw error
        }
        self.descriptor = descriptor
        self.path = path
        self.files = files
        self.queue = queue
    }

    /// Opens the file `name` of a directory for reading, for a caller who may read it; nil where it is no regular file. Blocks.
    convenience init?(
        regular name: String, in directory: OpenDirectory, _ path: DownloadPath, files: FileOperations,
        queue: FileQueue
    ) throws(JobError) {
        do throws(Errno) {
            // Its type is looked at first, as merely opening a device can have an effect.
            let status = try files.status(directory.descriptor, name)
            guard status.isRegular else { return nil }
            let descriptor = try files.openBeneath(directory.descriptor, name, O_RDONLY | O_NONBLOCK, 0)
            try self.init(descriptor: descriptor, path: path.absolute(name), files: files, queue: queue)
            if let rights = CallerRights(of: path, files), try !rights.permit(.read, on: descriptor) {
                throw Errno.permissionDenied
            }
            guard self.status.isRegular, self.status.identity == status.identity else { return nil }
        } catch {
            // Whether it is the daemon or the caller who may not, there is nothing to tell of it.
            if error == .permissionDenied, path.owner != nil { throw JobError(forbidden: path.absolute(name)) }
            throw JobError(path: error, "read", path.absolute(name))
        }
    }

    deinit {
        queue.start { [files, descriptor] in files.close(descriptor) }
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

    /// The directory in `path`, as `opened` where it is open already, and the name that `path` ends with. Blocks.
    static func above(
        _ path: String, opened: OpenDirectory? = nil, files: FileOperations
    ) throws(Errno) -> (directory: OpenDirectory, name: String) {
        let slash = path.lastIndex(of: "/") ?? path.startIndex
        let name = String(path[path.index(after: slash)...])
        if let opened { return (opened, name) }
        let above = String(path[..<slash])
        let descriptor = try files.openDirectory(above + "/")
        return (OpenDirectory(descriptor: descriptor, path: above, files: files), name)
    }

    /// Makes a file and takes its name away at once, so that it goes with the process. Not with O_TMPFILE, which some file
    /// systems lack. Gives its descriptor, for reading and writing. Blocks.
    func makeUnnamedFile(_ name: String) throws(Errno) -> Int32 {
        // A daemon that was killed may have left one.
        try? files.unlink(descriptor, name)
        let file = try files.openBeneath(descriptor, name, O_RDWR | O_CREAT | O_EXCL, 0o600)
        do throws(Errno) {
            try files.unlink(descriptor, name)
        } catch {
            files.close(file)
            throw error
        }
        return file
    }
}
