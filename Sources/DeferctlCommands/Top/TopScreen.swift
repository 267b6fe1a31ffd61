import ArgumentParser
import Dispatch
import Glibc
import JobClient
import JobModel

/// Shows what the daemon does on a full screen and changes jobs by keys, until q or a signal.
struct TopScreen: Sendable {
    let invocation: Invocation
    let interval: Duration

    enum Event: Sendable {
        case sample(TopSample, info: JSON)
        case output(Int64, String)
        case message(String)
        /// What the terminal sent at once.
        case keys([UInt8])
        case signal(Int32)
    }

    /// Shows samples until the end, and returns the status: that of a shell for the signal that ended it, except Ctrl-C.
    func run() async throws -> ExitStatus {
        let console = invocation.console
        // If events come faster than they are shown, the newest count; of keys that the daemon does not answer, the oldest.
        let (events, continuation) = AsyncStream.makeStream(of: Event.self, bufferingPolicy: .bufferingNewest(64))
        let (requests, ask) = AsyncStream.makeStream(of: TopView.Action.self, bufferingPolicy: .bufferingOldest(16))
        var screen = FullScreen(output: console.data) { continuation.yield($0) }
        defer { screen.end() }
        try screen.enter()
        return try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await serve(requests, continuation) }
            group.addTask {
                while true {
                    ask.yield(.sample)
                    try await Task.sleep(for: interval)
                }
            }
            var view = TopView()
            // The number of samples that a message stays for.
            var patience = 0
            defer { group.cancelAll() }
            for await event in events {
                switch event {
                case .sample(let sample, let identity):
                    patience -= 1
                    if patience < 0 { view.message = nil }
                    view.append(sample)
                    (view.info, view.tick) = (identity, view.tick + 1)
                    if case .output(let job) = view.mode { ask.yield(.output(job)) }
                case .output(let job, let text): view.output = (job, text)
                case .message(let text): (view.message, patience) = (text, max(1, Int(3 / (interval / .seconds(1)))))
                case .keys(let bytes):
                    for key in Key.all(in: bytes) {
                        view.message = nil
                        let action = view.press(key)
                        if action == .quit { return .ok }
                        if let action { ask.yield(action) }
                    }
                case .signal(SIGINT): return .ok
                case .signal(SIGTSTP):
                    screen.leave()
                    // The process stops here, and SIGCONT comes next.
                    kill(getpid(), SIGSTOP)
                    continue
                case .signal(SIGCONT): try screen.enter()
                case .signal(SIGWINCH): break
                case .signal(let number): return ExitStatus(128 + number)
                }
                let page = TopPage(view, console.format, now: .now, size: ScreenSize(of: console.data))
                try screen.draw(page.lines)
            }
            // Only an error of the task that talks to the daemon ends the events.
            try await group.next()
            return .ok
        }
    }

    /// Carries out requests, even if the daemon restarts.
    private func serve(
        _ requests: AsyncStream<TopView.Action>, _ events: AsyncStream<Event>.Continuation
    ) async throws {
        defer { events.finish() }
        let connection = DaemonConnection(path: invocation.socket.path) { events.yield(.message($0)) }
        try await invocation.withDaemon { client in
            try await connection.keeping(client) { client in
                let info = try await client.info()
                for await request in requests {
                    switch request {
                    case .quit, .sample: break
                    case .output(let job):
                        events.yield(.output(job, await client.lastOutput(of: job)))
                        continue
                    case .change(let job, let change):
                        do throws(JobClientError) {
                            let state = try await client.change(job, change)?.state ?? ""
                            events.yield(
                                .message("Job \(job) is \(change == .cancel ? "being cancelled" : state)."))
                        } catch {
                            guard error.code == .rpc, !error.isLossOfDaemon else { throw error }
                            events.yield(.message(CommandFailure(error).message))
                        }
                    }
                    let rows = ScreenSize(of: invocation.console.data).rows
                    let sample = try await TopSample(from: client, rows: rows, withOthers: true)
                    events.yield(.sample(sample, info: info))
                }
            }
        }
    }
}

/// The terminal while the program has it to itself: the alternate screen, no cursor, keys as they are typed.
struct FullScreen {
    private let output: FileOutput
    private let signals: SignalSources
    /// Reads the keys, if standard input is a terminal.
    private let reader: (any DispatchSourceRead)?
    private var before: termios?
    private var isEntered = false

    /// Calls `take` with keys and signals, up to ``end()``.
    init(output: FileOutput, _ take: @escaping @Sendable (TopScreen.Event) -> Void) {
        self.output = output
        signals = SignalSources([SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGTSTP, SIGCONT]) { take(.signal($0)) }
        reader = isatty(STDIN_FILENO) == 1 ? DispatchSource.makeReadSource(fileDescriptor: STDIN_FILENO) : nil
        reader?.setEventHandler {
            var bytes = [UInt8](repeating: 0, count: 64)
            let count = read(STDIN_FILENO, &bytes, bytes.count)
            if count > 0 { take(.keys(Array(bytes[..<count]))) }
            // The terminal has hung up, which does not always send SIGHUP.
            if count == 0 || (count < 0 && errno != EINTR && errno != EAGAIN) { take(.signal(SIGHUP)) }
        }
        reader?.resume()
    }

    /// Takes the terminal, also again after another program had it.
    mutating func enter() throws(CommandFailure) {
        var settings = termios()
        if reader != nil, tcgetattr(STDIN_FILENO, &settings) == 0 {
            before = before ?? settings
            // No echo and no lines; Ctrl-C and Ctrl-Z remain signals.
            settings.c_lflag &= ~tcflag_t(ICANON | ECHO)
            tcsetattr(STDIN_FILENO, TCSADRAIN, &settings)
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
        guard var settings = before else { return }
        before = nil
        // In the background, tcsetattr would stop the program.
        let handler = signal(SIGTTOU, SIG_IGN)
        tcsetattr(STDIN_FILENO, TCSADRAIN, &settings)
        signal(SIGTTOU, handler)
    }

    /// Leaves the terminal for good; what is typed from now on is for the shell.
    mutating func end() {
        reader?.cancel()
        leave()
        signals.cancel()
    }

    /// Draws `lines` without clearing the screen first, which would flicker. Behind a full line, a terminal would clear the
    /// last character.
    func draw(_ lines: [String]) throws(CommandFailure) {
        try output.write("\u{1B}[H" + lines.map { "\u{1B}[K" + $0 }.joined(separator: "\r\n") + "\u{1B}[J")
    }
}
