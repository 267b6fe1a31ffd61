import Glibc
import JobClient
import JobModel

/// Shows what the daemon does on a full screen, until q or a signal.
struct TopScreen: Sendable {
    let invocation: Invocation
    let interval: Duration

    private static let keysHint = "q quits"

    private enum Event: Sendable {
        case sample(TopSample, info: JSON)
        case message(String)
        case screen(ScreenEvent)
    }

    func run() async throws {
        guard let deadly = try await show() else { return }
        // The parent process should see which signal ended this one. Dispatch's threads block all signals.
        signal(deadly, SIG_DFL)
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, deadly)
        pthread_sigmask(SIG_UNBLOCK, &signals, nil)
        raise(deadly)
    }

    /// Shows samples until the end; returns the signal that ended it, except for Ctrl-C.
    private func show() async throws -> Int32? {
        let console = invocation.console
        var screen = FullScreen(output: console.data)
        // If events come faster than they are shown, the newest count.
        let (events, continuation) = AsyncStream.makeStream(of: Event.self, bufferingPolicy: .bufferingNewest(64))
        let sources = ScreenEventSources(keys: screen.keys) { continuation.yield(.screen($0)) }
        defer {
            screen.leave()
            sources.cancel()
        }
        try screen.enter()
        return try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await sample(continuation) }
            let page = TopPage(format: console.format)
            var (history, info, message, tick) = (TopHistory(), JSON.null, "asking the daemon", 0)
            defer { group.cancelAll() }
            for await event in events {
                switch event {
                case .sample(let sample, let identity):
                    history.append(sample)
                    (info, message, tick) = (identity, Self.keysHint, tick + 1)
                case .message(let text): message = text
                case .screen(.key(UInt8(ascii: "q"))), .screen(.key(UInt8(ascii: "Q"))), .screen(.signal(SIGINT)):
                    return nil
                case .screen(.signal(SIGTSTP)):
                    screen.leave()
                    // The process stops here, and SIGCONT comes next.
                    kill(getpid(), SIGSTOP)
                    continue
                case .screen(.signal(SIGCONT)): try screen.enter()
                case .screen(.key), .screen(.signal(SIGWINCH)): break
                case .screen(.signal(let number)): return number
                }
                try screen.draw(
                    page.lines(
                        history, info: info, message: message, tick: tick, now: .now,
                        size: ScreenSize(of: console.data)))
            }
            // Only an error of the sampling ends the events.
            try await group.next()
            return nil
        }
    }

    /// Samples the daemon repeatedly, even if it restarts.
    private func sample(_ continuation: AsyncStream<Event>.Continuation) async throws {
        defer { continuation.finish() }
        let connection = DaemonConnection(path: invocation.socket) { continuation.yield(.message($0)) }
        try await invocation.withDaemon { client in
            try await connection.keeping(client) { client in
                let info = try await client.info()
                while true {
                    let rows = ScreenSize(of: invocation.console.data).rows
                    continuation.yield(.sample(try await TopSample(from: client, rows: rows), info: info))
                    try await Task.sleep(for: interval)
                }
            }
        }
    }
}
