import SystemPackage
import Glibc

/// A file that is replaced as a whole: who reads it sees what was there before, or all that is new.
enum ReplacedFile {
    /// Writes `text` to `path` by way of a file beside it, which is gone afterwards whatever happens.
    static func write(_ text: String, to path: String) throws(CommandFailure) {
        // The name ends otherwise than the file's own: those who look for files by their ending pass it over.
        var template = Array((path + ".XXXXXX").utf8CString)
        let descriptor = mkostemp(&template)
        guard descriptor >= 0 else { throw failure(path, errno) }
        defer { close(descriptor) }
        do throws(CommandFailure) {
            try FileOutput(descriptor: descriptor, name: path).write(text)
            // mkstemp gives it to its owner alone; what is written is for those whom the umask allows.
            let mask = umask(0)
            umask(mask)
            guard fchmod(descriptor, 0o666 & ~mask) == 0, rename(template, path) == 0 else {
                throw failure(path, errno)
            }
        } catch {
            unlink(template)
            throw error
        }
    }

    private static func mkostemp(_ template: inout [CChar]) -> Int32 {
        let descriptor = mkstemp(&template)
        if descriptor >= 0 { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
        return descriptor
    }

    private static func failure(_ path: String, _ number: Int32) -> CommandFailure {
        CommandFailure(
            number == EACCES || number == EPERM ? .forbidden : .output,
            "\(path) cannot be written: \(Errno(rawValue: number)). Check its directory, or name another file.")
    }
}
