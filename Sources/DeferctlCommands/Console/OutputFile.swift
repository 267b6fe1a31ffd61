import SystemPackage
import Glibc

/// A file of the user's that is replaced.
///
/// It is truncated and written in place, as by a shell's redirection, so that `/dev/stdout` and pipes work, too.
struct OutputFile {
    private let output: FileOutput

    init(path: String) throws(CommandFailure) {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o666)
        guard descriptor >= 0 else {
            let status: ExitStatus = errno == EACCES || errno == EPERM ? .forbidden : .output
            throw CommandFailure(status, "\(path) cannot be written: \(Errno(rawValue: errno)).")
        }
        output = FileOutput(descriptor: descriptor, name: path)
    }

    func write(_ bytes: [UInt8]) throws(CommandFailure) { try output.write(bytes) }

    /// Closes the file; a full disk may show only now.
    func close() throws(CommandFailure) {
        guard Glibc.close(output.descriptor) == 0 else {
            throw CommandFailure(.output, "Writing to \(output.name) failed: \(Errno(rawValue: errno)).")
        }
    }
}
