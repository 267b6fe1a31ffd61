import Glibc
import JobModel
import SystemPackage

/// An open file or directory, which stays the same one even if its path changes.
package final class OpenFile: Sendable {
    package let descriptor: Int32
    private let files: FileOperations
    private let queue: FileQueue?

    /// Closed when the last reference to it goes away: on `queue`, as closing a file that was written may block.
    package init(_ descriptor: Int32, _ files: FileOperations, closedOn queue: FileQueue? = nil) {
        self.descriptor = descriptor
        self.files = files
        self.queue = queue
    }

    deinit {
        guard let queue else { return files.close(descriptor) }
        queue.start { [files, descriptor] in files.close(descriptor) }
    }

    /// Opens a directory below this one, through no symbolic link. Blocks.
    func directory(_ path: String, flags: Int32 = O_RDONLY) throws(Errno) -> OpenFile {
        OpenFile(try files.openBeneath(descriptor, path, flags | O_DIRECTORY, 0), files)
    }
}

extension FileOperations {
    /// The directory of a file of the daemon, which is opened unless it is `open`, and the name of the file. Blocks.
    func directory(of path: String, _ open: OpenFile?) throws(Errno) -> (OpenFile, name: String) {
        let name = String(path.split(separator: "/").last ?? "")
        if let open { return (open, name) }
        return (OpenFile(try openDirectory(String(path.dropLast(name.utf8.count))), self), name)
    }
}

/// A regular file that is open for reading, with its status at that time.
struct ReadableFile: Sendable {
    let path: String
    let status: FileOperations.Status
    private let file: OpenFile
    private let directory: OpenFile
    let name: String
    private let files: FileOperations

    var descriptor: Int32 { file.descriptor }

    /// Opens the file `name` of a directory if the caller may read it; nil if it is not a regular file. Blocks.
    init?(
        _ name: String, in directory: OpenFile, _ path: DownloadPath, _ files: FileOperations, _ queue: FileQueue
    ) throws(JobError) {
        self.path = path.absolute(name)
        (self.directory, self.name, self.files) = (directory, name, files)
        do throws(Errno) {
            // The type is checked first, as opening a device can have an effect.
            let found = try files.status(directory.descriptor, name)
            guard found.isRegular else { return nil }
            file = OpenFile(
                try files.openBeneath(directory.descriptor, name, O_RDONLY | O_NONBLOCK, 0), files, closedOn: queue)
            status = try files.statusOfOpen(file.descriptor)
            guard try path.permits(.read, on: file.descriptor, files) else { throw Errno.permissionDenied }
            guard status.isRegular, status.identity == found.identity else { return nil }
        } catch {
            // The message does not reveal whether the daemon or the caller lacks the right.
            if error == .permissionDenied, path.owner != nil { throw JobError(forbidden: self.path) }
            throw JobError(path: error, "read", self.path)
        }
    }

    /// Reads from `offset` on until `buffer` is full. Blocks.
    func read(at offset: Int64, into buffer: UnsafeMutableRawBufferPointer) throws(JobError) {
        let count = try JobError.naming(path, "read") { () throws(Errno) in
            try files.fill(buffer, from: descriptor, at: offset)
        }
        guard count == buffer.count else { throw changed }
    }

    /// Throws if the file changed since it was opened, or if another file has its name. Blocks.
    func checkUnchanged() throws(JobError) {
        do throws(Errno) {
            let present = try files.status(directory.descriptor, name)
            if present.identity == status.identity, present.size == status.size,
                present.modifiedAt == status.modifiedAt
            {
                return
            }
        } catch {
            guard error == .noSuchFileOrDirectory else { throw JobError(storage: error, "looked at", path) }
        }
        throw changed
    }

    private var changed: JobError {
        JobError(.network, "\"\(path)\" changed while it was sent; try again once it is complete.", retryable: true)
    }
}
