import SystemPackage
import Glibc

/// A file of the user's that is replaced.
///
/// It is truncated and written in place, as by a shell's redirection, so that `/dev/stdout` and pipes work, too.
struct OutputFile {
    private let output: FileOutput

    /// Throws where it could not be opened as things are now, so that no job runs for nothing; nothing is changed.
    static func check(path: String) throws(CommandFailure) {
        if access(path, W_OK) == 0 { return }
        guard errno == ENOENT else { throw unwritable(path) }
        let directory = path.lastIndex(of: "/").map { String(path[...$0]) } ?? "."
        guard access(directory, W_OK | X_OK) == 0 else { throw unwritable(path) }
    }

    init(path: String) throws(CommandFailure) {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o666)
        guard descriptor >= 0 else { throw Self.unwritable(path) }
        output = FileOutput(descriptor: descriptor, name: path)
    }

    private static func unwritable(_ path: String) -> CommandFailure {
        let status: ExitStatus = errno == EACCES || errno == EPERM ? .forbidden : .output
        return CommandFailure(status, "\(path) cannot be written: \(Errno(rawValue: errno)).")
    }

    func write(_ bytes: [UInt8]) throws(CommandFailure) { try output.write(bytes) }

    /// Closes the file; a full disk may show only now.
    func close() throws(CommandFailure) {
        guard Glibc.close(output.descriptor) == 0 else {
            throw CommandFailure(.output, "Writing to \(output.name) failed: \(Errno(rawValue: errno)).")
        }
    }
}
