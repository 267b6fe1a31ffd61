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
