import Dispatch
import Glibc
import Synchronization

/// A terminal that the program has to itself for a while: its other screen, no cursor, keys as they are typed.
///
/// States: left, entered. ``enter()`` and ``leave()`` may come in any order and any number of times, as signals do.
final class FullScreen: Sendable {
    private let output: FileOutput
    /// Where keys come from; nil where standard input is no terminal.
    let keys: Int32?
    /// How the terminal was set before; nil while it is left.
    private let before = Mutex<termios?>(nil)
    private let isEntered = Mutex(false)

    init(output: FileOutput) {
        self.output = output
        keys = isatty(STDIN_FILENO) == 1 ? STDIN_FILENO : nil
    }

    /// Takes the terminal over, or again after somebody else had it.
    func enter() throws(CommandFailure) {
        if let keys {
            before.withLock { before in
                var settings = termios()
                guard tcgetattr(keys, &settings) == 0 else { return }
                if before == nil { before = settings }
                // No echo and no lines; Ctrl-C and Ctrl-Z go on being signals.
                settings.c_lflag &= ~tcflag_t(ICANON | ECHO)
                tcsetattr(keys, TCSADRAIN, &settings)
            }
        }
        isEntered.withLock { $0 = true }
        // The other screen, no wrapping at its edge, no cursor.
        try output.write("\u{1B}[?1049h\u{1B}[?7l\u{1B}[?25l")
    }

    /// Gives the terminal back as it was.
    func leave() {
        let wasEntered = isEntered.withLock { isEntered in
            defer { isEntered = false }
            return isEntered
        }
        guard wasEntered else { return }
        // A terminal that is gone needs nothing.
        try? output.write("\u{1B}[?25h\u{1B}[?7h\u{1B}[?1049l")
        guard let keys else { return }
        before.withLock { before in
            guard var settings = before else { return }
            before = nil
            // From the background this would stop the program.
            let handler = signal(SIGTTOU, SIG_IGN)
            tcsetattr(keys, TCSADRAIN, &settings)
            signal(SIGTTOU, handler)
        }
    }

    /// Draws `lines` over what is there, without clearing before, which would flicker.
    func draw(_ lines: [String]) throws(CommandFailure) {
        try output.write("\u{1B}[H" + lines.map { $0 + "\u{1B}[K" }.joined(separator: "\r\n") + "\u{1B}[J")
    }
}

/// What comes from the terminal of a full screen: keys, and signals.
enum ScreenEvent: Sendable, Equatable {
    case key(UInt8)
    case signal(Int32)

    /// The signals that are told as events while ``tell(keys:to:while:)`` runs.
    static let signals = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGTSTP, SIGCONT]

    /// Tells `take` the events while `body` runs.
    static func tell<Value>(
        keys: Int32?, to take: @escaping @Sendable (ScreenEvent) -> Void, while body: () async throws -> Value
    ) async throws -> Value {
        let sources = signals.map { number in
            // A signal source sees what the process ignores; the two of job control stay out of the default's way so.
            let handler = Glibc.signal(number, number == SIGCONT || number == SIGWINCH ? SIG_DFL : SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number)
            source.setEventHandler { take(.signal(number)) }
            source.resume()
            return (source, number, handler)
        }
        var reader: (any DispatchSourceRead)?
        if let keys {
            let source = DispatchSource.makeReadSource(fileDescriptor: keys)
            source.setEventHandler {
                var bytes = [UInt8](repeating: 0, count: 64)
                let count = read(keys, &bytes, bytes.count)
                if count > 0 { for byte in bytes[..<count] { take(.key(byte)) } }
                // The terminal has hung up, which ends the screen, as SIGHUP does where it comes.
                if count == 0 || (count < 0 && errno != EINTR && errno != EAGAIN) {
                    take(.signal(SIGHUP))
                }
            }
            source.resume()
            reader = source
        }
        defer {
            reader?.cancel()
            for (source, number, handler) in sources {
                source.cancel()
                Glibc.signal(number, handler)
            }
        }
        return try await body()
    }
}
