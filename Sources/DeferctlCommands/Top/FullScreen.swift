import Dispatch
import Glibc

/// The terminal while the program has it to itself: the alternate screen, no cursor, keys as they are typed.
struct FullScreen {
    let output: FileOutput
    /// The source of keys, if standard input is a terminal.
    let keys: Int32? = isatty(STDIN_FILENO) == 1 ? STDIN_FILENO : nil
    private var before: termios?
    private var isEntered = false

    init(output: FileOutput) { self.output = output }

    /// Takes the terminal, also again after another program had it.
    mutating func enter() throws(CommandFailure) {
        var settings = termios()
        if let keys, tcgetattr(keys, &settings) == 0 {
            before = before ?? settings
            // No echo and no lines; Ctrl-C and Ctrl-Z remain signals.
            settings.c_lflag &= ~tcflag_t(ICANON | ECHO)
            tcsetattr(keys, TCSADRAIN, &settings)
        }
        isEntered = true
        // The alternate screen, no wrapping at its edge, no cursor.
        try output.write("\u{1B}[?1049h\u{1B}[?7l\u{1B}[?25l")
    }

    mutating func leave() {
        guard isEntered else { return }
        isEntered = false
        // A terminal that is gone needs nothing.
        try? output.write("\u{1B}[?25h\u{1B}[?7h\u{1B}[?1049l")
        guard let keys, var settings = before else { return }
        before = nil
        // In the background, tcsetattr would stop the program.
        let handler = signal(SIGTTOU, SIG_IGN)
        tcsetattr(keys, TCSADRAIN, &settings)
        signal(SIGTTOU, handler)
    }

    /// Draws `lines` without clearing the screen first, which would flicker. Behind a full line, a terminal would clear the
    /// last character.
    func draw(_ lines: [String]) throws(CommandFailure) {
        try output.write("\u{1B}[H" + lines.map { "\u{1B}[K" + $0 }.joined(separator: "\r\n") + "\u{1B}[J")
    }
}

enum ScreenEvent: Sendable, Equatable {
    /// What the terminal sent at once.
    case keys([UInt8])
    case signal(Int32)
}

/// The keys and signals that a full screen gets, until they are cancelled.
struct ScreenEventSources {
    private let signals: SignalSources
    private var reader: (any DispatchSourceRead)?

    init(keys: Int32?, _ take: @escaping @Sendable (ScreenEvent) -> Void) {
        signals = SignalSources([SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGTSTP, SIGCONT]) { take(.signal($0)) }
        guard let keys else { return }
        let reader = DispatchSource.makeReadSource(fileDescriptor: keys)
        reader.setEventHandler {
            var bytes = [UInt8](repeating: 0, count: 64)
            let count = read(keys, &bytes, bytes.count)
            if count > 0 { take(.keys(Array(bytes[..<count]))) }
            // The terminal has hung up, which does not always send SIGHUP.
            if count == 0 || (count < 0 && errno != EINTR && errno != EAGAIN) { take(.signal(SIGHUP)) }
        }
        reader.resume()
        self.reader = reader
    }

    func stopReading() { reader?.cancel() }

    func cancel() {
        stopReading()
        signals.cancel()
    }
}
