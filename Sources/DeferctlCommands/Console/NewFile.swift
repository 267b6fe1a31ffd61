import Glibc
import SystemPackage

/// A file of the user's that is there only when it is complete, for them alone, and never over another one.
struct NewFile {
    private let path: String
    private let output: FileOutput
    private var draft: String { path + ".part" }

    init(path: String) throws(CommandFailure) {
        self.path = path
        var status = stat()
        guard lstat(path, &status) != 0 else { throw Self.exists(path) }
        let descriptor = open(path + ".part", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else {
            guard errno != EEXIST else { throw Self.exists(path + ".part") }
            throw Self.unwritable(path)
        }
        output = FileOutput(descriptor: descriptor, name: path)
    }

    func write(_ bytes: [UInt8]) throws(CommandFailure) { try output.write(bytes) }

    /// Gives it its name, durably.
    func finish() throws(CommandFailure) {
        guard fsync(output.descriptor) == 0 else { throw Self.unwritable(path) }
        if link(draft, path) == 0 {
            unlink(draft)
        } else {
            guard errno != EEXIST else { throw Self.exists(path) }
            // A file system without links.
            var status = stat()
            guard lstat(path, &status) != 0 else { throw Self.exists(path) }
            guard rename(draft, path) == 0 else { throw Self.unwritable(path) }
        }
        close(output.descriptor)
        let slash = path.lastIndex(of: "/")
        let directory = open(slash.map { String(path[...$0]) } ?? ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard directory >= 0 else { return }
        fsync(directory)
        close(directory)
    }

    /// Leaves nothing behind of one that is not finished.
    func remove() {
        close(output.descriptor)
        unlink(draft)
    }

    private static func exists(_ path: String) -> CommandFailure {
        CommandFailure(.output, "\(path) is there already; name another file, or move it away.")
    }

    private static func unwritable(_ path: String) -> CommandFailure {
        let status: ExitStatus = errno == EACCES || errno == EPERM ? .forbidden : .output
        return CommandFailure(status, "\(path) cannot be written: \(Errno(rawValue: errno)).")
    }
}
