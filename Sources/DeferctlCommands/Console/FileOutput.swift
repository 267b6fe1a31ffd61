import FoundationEssentials
import Glibc
import SystemPackage

/// A file descriptor for output, without a buffer.
struct FileOutput: Sendable {
    static let standardOutput = FileOutput(descriptor: STDOUT_FILENO, name: "standard output")
    static let standardError = FileOutput(descriptor: STDERR_FILENO, name: "standard error")

    let descriptor: Int32
    let name: String

    /// Writes all of `bytes`.
    ///
    /// If the reader of a pipe has gone, SIGPIPE ends the program, as it does any program that leaves the signal alone.
    func write(_ bytes: [UInt8]) throws(CommandFailure) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count >= 0 {
                rest = rest.dropFirst(count)
                continue
            }
            switch errno {
            case EINTR: continue
            case EAGAIN:
                // Another process made the descriptor non-blocking; it is not ours to change.
                var wanted = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                poll(&wanted, 1, -1)
            case EPIPE:
                signal(SIGPIPE, SIG_DFL)
                raise(SIGPIPE)
                // A blocked signal ends nothing.
                _exit(128 + SIGPIPE)
            default:
                throw CommandFailure(.output, "Writing to \(name) failed: \(Errno(rawValue: errno)).")
            }
        }
    }

    func write(_ text: String) throws(CommandFailure) { try write(Array(text.utf8)) }

    /// Writes text from another user or a program; on a terminal, control characters are escaped.
    func show(_ text: String) throws(CommandFailure) {
        var filter = TerminalFilter()
        try write(isTerminal ? filter.filter(Array(text.utf8)) : Array(text.utf8))
    }

    var isTerminal: Bool { isatty(descriptor) == 1 }

    /// Whether these variables describe a terminal that can move its cursor.
    static func hasCursor(_ variables: [String: String]) -> Bool {
        !["", "dumb"].contains(variables["TERM", default: ""])
    }
}

struct ScreenSize: Sendable, Equatable {
    var columns: Int
    var rows: Int
}

extension ScreenSize {
    /// The current size of the terminal behind `output`; 80 by 24 if it is unknown.
    init(of output: FileOutput) {
        var size = winsize()
        let isKnown = ioctl(output.descriptor, UInt(TIOCGWINSZ), &size) == 0
        columns = isKnown && size.ws_col > 0 ? Int(size.ws_col) : 80
        rows = isKnown && size.ws_row > 0 ? Int(size.ws_row) : 24
    }
}

extension CommandFailure {
    /// The file at `path` cannot be written, for the reason in `errno`.
    fileprivate static func unwritable(_ path: String) -> CommandFailure {
        CommandFailure(
            errno == EACCES || errno == EPERM ? .forbidden : .output,
            "\(path) cannot be written: \(Errno(rawValue: errno)). Check its directory, or name another file.")
    }
}

extension FileOutput {
    /// Throws if the file could not be opened now, so that no job runs in vain; changes nothing.
    static func check(path: String) throws(CommandFailure) {
        if access(path, W_OK) == 0 {
            guard isFile(path, S_IFDIR) else { return }
            errno = EISDIR
        }
        guard errno == ENOENT, access(directory(of: path), W_OK | X_OK) == 0 else { throw .unwritable(path) }
    }

    fileprivate static func directory(of path: String) -> String {
        path.lastIndex(of: "/").map { String(path[...$0]) } ?? "."
    }

    /// Truncates the file and writes in place, as a shell's redirection does, so that `/dev/stdout` and pipes work too.
    init(path: String) throws(CommandFailure) {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o666)
        guard descriptor >= 0 else { throw .unwritable(path) }
        self.init(descriptor: descriptor, name: path)
    }

    /// Closes the file; a full disk may show only now.
    func close() throws(CommandFailure) {
        if Glibc.close(descriptor) != 0 {
            throw CommandFailure(.output, "Writing to \(name) failed: \(Errno(rawValue: errno)).")
        }
    }
}

/// Whether there is a file of this type, such as `S_IFDIR`, at `path`.
func isFile(_ path: String, _ type: mode_t) -> Bool {
    var facts = stat()
    return stat(path, &facts) == 0 && facts.st_mode & S_IFMT == type
}

/// A file that appears under its name when it is complete: readers see the old file or all of the new one.
enum DraftFile {
    /// Calls `write` with a file beside `path`, and then gives it that name durably; if either fails, no trace remains.
    ///
    /// A device, a pipe or a link that should be replaced gets the bytes instead.
    ///
    /// A file that replaces another gets the mode that the umask allows; a new one is for its owner only.
    static func write<Value>(
        to path: String, replacing: Bool, _ write: (FileOutput) async throws -> Value
    ) async throws -> Value {
        if !replacing, access(path, F_OK) == 0 { throw exists(path) }
        var facts = stat()
        if replacing, lstat(path, &facts) == 0, facts.st_mode & S_IFMT != S_IFREG {
            let file = try FileOutput(path: path)
            let value = try await write(file)
            try file.close()
            return value
        }
        // The draft ends differently from the file: programs that look for files by extension ignore it.
        let draft = "\(path).\(UUID().uuidString)"
        let descriptor = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, replacing ? 0o666 : 0o600)
        guard descriptor >= 0 else { throw CommandFailure.unwritable(path) }
        defer { close(descriptor) }
        do {
            let value = try await write(FileOutput(descriptor: descriptor, name: path))
            guard fsync(descriptor) == 0 else { throw CommandFailure.unwritable(path) }
            try Task.checkCancellation()
            // A link, unlike a new name, never takes the place of a file that exists by now.
            if replacing || link(draft, path) != 0 {
                if !replacing, errno == EEXIST { throw exists(path) }
                guard rename(draft, path) == 0 else { throw CommandFailure.unwritable(path) }
            } else {
                unlink(draft)
            }
            let directory = open(FileOutput.directory(of: path), O_RDONLY | O_DIRECTORY | O_CLOEXEC)
            fsync(directory)
            close(directory)
            return value
        } catch {
            unlink(draft)
            throw error
        }
    }

    private static func exists(_ path: String) -> CommandFailure {
        CommandFailure(.output, "\(path) already exists; name another file, or move it away.")
    }
}
