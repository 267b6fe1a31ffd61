import Glibc
import JobClient
import JobModel

/// Shows what the daemon does on a full screen, until q or a signal.
struct TopScreen: Sendable {
    let invocation: Invocation
    /// The pause between two looks.
    let interval: Duration

    private static let keysHint = "q quits"

    /// What the tasks of the screen tell it.
    private enum Event: Sendable {
        case sample(TopSample, info: JSON)
        case message(String)
        case screen(ScreenEvent)
    }

    func run() async throws {
        let screen = FullScreen(output: invocation.console.data)
        var deadly: Int32?
        do {
            deadly = try await ScreenEvent.stream(keys: screen.keys) { events in
                try screen.enter()
                return try await show(on: screen, events)
            }
        } catch {
            screen.leave()
            throw error
        }
        screen.leave()
        if let deadly {
            // Whoever started the program shall see what ended it. Dispatch's threads block all signals.
            signal(deadly, SIG_DFL)
            var signals = sigset_t()
            sigemptyset(&signals)
            sigaddset(&signals, deadly)
            pthread_sigmask(SIG_UNBLOCK, &signals, nil)
            raise(deadly)
        }
    }

    /// Shows samples until the end; returns the signal that ended it, other than Ctrl-C.
    private func show(on screen: FullScreen, _ input: AsyncStream<ScreenEvent>) async throws -> Int32? {
        let (events, continuation) = AsyncStream.makeStream(of: Event.self, bufferingPolicy: .bufferingNewest(64))
        return try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { for await event in input { continuation.yield(.screen(event)) } }
            group.addTask { try await sample(continuation) }
            let console = invocation.console
            let page = TopPage(format: console.format)
            var (history, info, message, tick) = (TopHistory(), JSON.null, "asking the daemon", 0)
            defer { group.cancelAll() }
            for await event in events {
                switch event {
                case .sample(let sample, let identity):
                    history.append(sample)
                    (info, message, tick) = (identity, Self.keysHint, tick + 1)
                case .message(let text): message = text
                case .screen(.key(let key)):
                    if key == UInt8(ascii: "q") || key == UInt8(ascii: "Q") { return nil }
                case .screen(.signal(SIGINT)): return nil
                case .screen(.signal(SIGTSTP)):
                    screen.leave()
                    // It goes on from here, and SIGCONT comes next: until then the screen is somebody else's.
                    kill(getpid(), SIGSTOP)
                    continue
                case .screen(.signal(SIGCONT)): try screen.enter()
                case .screen(.signal(SIGWINCH)): break
                case .screen(.signal(let number)): return number
                }
                try screen.draw(
                    page.lines(
                        history, info: info, message: message, tick: tick, now: .now,
                        size: ScreenSize(of: console.data)))
            }
            // Only the sampling ends them, with an error.
            try await group.next()
            return nil
        }
    }

    /// Looks at the daemon again and again, also at one that was started anew.
    private func sample(_ continuation: AsyncStream<Event>.Continuation) async throws {
        defer { continuation.finish() }
        let connection = DaemonConnection(path: invocation.socket) { continuation.yield(.message($0)) }
        try await invocation.withDaemon { client in
            try await connection.keeping(client) { client in
                let info = try await client.info()
                while true {
                    let rows = ScreenSize(of: invocation.console.data).rows
                    let sample = try await TopSample(from: client, rows: rows)
                    continuation.yield(.sample(sample, info: info))
                    try await Task.sleep(for: interval)
                }
            }
        }
    }
}
