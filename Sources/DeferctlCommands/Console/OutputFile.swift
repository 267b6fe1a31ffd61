import Glibc
import SystemPackage

extension CommandFailure {
    /// The file at `path` cannot be written, as `errno` says.
    fileprivate static func unwritable(_ path: String) -> CommandFailure {
        CommandFailure(
            errno == EACCES || errno == EPERM ? .forbidden : .output,
            "\(path) cannot be written: \(Errno(rawValue: errno)). Check its directory, or name another file.")
    }
}

/// A file of the user's that is replaced.
///
/// It is truncated and written in place, as by a shell's redirection, so that `/dev/stdout` and pipes work, too.
struct OutputFile {
    private let output: FileOutput

    /// Throws where it could not be opened as things are now, so that no job runs for nothing; nothing is changed.
    static func check(path: String) throws(CommandFailure) {
        if access(path, W_OK) == 0 { return }
        let directory = path.lastIndex(of: "/").map { String(path[...$0]) } ?? "."
        guard errno == ENOENT, access(directory, W_OK | X_OK) == 0 else { throw .unwritable(path) }
    }

    init(path: String) throws(CommandFailure) {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o666)
        guard descriptor >= 0 else { throw .unwritable(path) }
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

/// A file of the user's that is there only when it is complete, for them alone, and never over another one.
struct NewFile {
    private let path: String
    private let output: FileOutput
    private var draft: String { path + ".part" }

    init(path: String) throws(CommandFailure) {
        self.path = path
        try Self.checkAbsence(of: path)
        let descriptor = open(path + ".part", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw errno == EEXIST ? Self.exists(path + ".part") : .unwritable(path) }
        output = FileOutput(descriptor: descriptor, name: path)
    }

    func write(_ bytes: [UInt8]) throws(CommandFailure) { try output.write(bytes) }

    /// Gives it its name, durably.
    func finish() throws(CommandFailure) {
        guard fsync(output.descriptor) == 0 else { throw .unwritable(path) }
        if link(draft, path) == 0 {
            unlink(draft)
        } else {
            guard errno != EEXIST else { throw Self.exists(path) }
            // A file system without links.
            try Self.checkAbsence(of: path)
            guard rename(draft, path) == 0 else { throw .unwritable(path) }
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

    private static func checkAbsence(of path: String) throws(CommandFailure) {
        var status = stat()
        if lstat(path, &status) == 0 { throw exists(path) }
    }

    private static func exists(_ path: String) -> CommandFailure {
        CommandFailure(.output, "\(path) is there already; name another file, or move it away.")
    }
}

/// A file that is replaced as a whole: who reads it sees what was there before, or all that is new.
enum ReplacedFile {
    /// Writes `text` to `path` by way of a file beside it, which is gone afterwards whatever happens.
    static func write(_ text: String, to path: String) throws(CommandFailure) {
        // The name ends otherwise than the file's own: those who look for files by their ending pass it over.
        var template = Array((path + ".XXXXXX").utf8CString)
        let descriptor = mkstemp(&template)
        guard descriptor >= 0 else { throw .unwritable(path) }
        defer { close(descriptor) }
        do throws(CommandFailure) {
            try FileOutput(descriptor: descriptor, name: path).write(text)
            // mkstemp gives it to its owner alone; what is written is for those whom the umask allows.
            let mask = umask(0)
            umask(mask)
            guard fchmod(descriptor, 0o666 & ~mask) == 0, rename(template, path) == 0 else { throw .unwritable(path) }
        } catch {
            unlink(template)
            throw error
        }
    }
}
