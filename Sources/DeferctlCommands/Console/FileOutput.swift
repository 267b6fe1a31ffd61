import Glibc
import SystemPackage

/// A file descriptor that text and data are written to, without a buffer in between.
struct FileOutput: Sendable {
    static let standardOutput = FileOutput(descriptor: STDOUT_FILENO, name: "standard output")
    static let standardError = FileOutput(descriptor: STDERR_FILENO, name: "standard error")

    let descriptor: Int32
    /// Its name in messages.
    let name: String

    /// Writes all of `bytes`.
    ///
    /// Where nobody reads any more, the program ends by SIGPIPE, as one does that never changed the signal's handling.
    func write(_ bytes: [UInt8]) throws(CommandFailure) {
        var written = 0
        while written < bytes.count {
            let count = bytes.withUnsafeBytes { raw in
                Glibc.write(descriptor, raw.baseAddress.map { $0 + written }, raw.count - written)
            }
            if count >= 0 {
                written += count
                continue
            }
            switch errno {
            case EINTR: continue
            case EAGAIN:
                // Someone else made the descriptor non-blocking; it is not ours to change.
                var wanted = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                poll(&wanted, 1, -1)
            case EPIPE:
                signal(SIGPIPE, SIG_DFL)
                raise(SIGPIPE)
            default:
                let reason = Errno(rawValue: errno)
                throw CommandFailure(.output, "Writing to \(name) failed: \(reason).")
            }
        }
    }

    func write(_ text: String) throws(CommandFailure) { try write(Array(text.utf8)) }

    /// Writes a text of somebody else's: on a terminal control characters are spelt out.
    func show(_ text: String) throws(CommandFailure) {
        var filter = TerminalFilter()
        try write(isTerminal ? filter.filter(Array(text.utf8)) : Array(text.utf8))
    }

    /// Whether people read it on a terminal.
    var isTerminal: Bool { isatty(descriptor) == 1 }

    /// Whether these variables tell of a terminal that can move its cursor.
    static func hasCursor(_ variables: [String: String]) -> Bool {
        !["", "dumb"].contains(variables["TERM", default: ""])
    }
}

/// The columns and rows of a terminal.
struct ScreenSize: Sendable, Equatable {
    var columns: Int
    var rows: Int
}

extension ScreenSize {
    /// The size of the terminal behind `output` at this moment; 80 by 24 where it does not say.
    init(of output: FileOutput) {
        var size = winsize()
        let isKnown = ioctl(output.descriptor, UInt(TIOCGWINSZ), &size) == 0
        columns = isKnown && size.ws_col > 0 ? Int(size.ws_col) : 80
        rows = isKnown && size.ws_row > 0 ? Int(size.ws_row) : 24
    }
}
