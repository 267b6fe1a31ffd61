import Glibc
import JobClient
import JobModel

/// Shows what the daemon does on a full screen and changes jobs by keys, until q or a signal.
struct TopScreen: Sendable {
    let invocation: Invocation
    let interval: Duration

    private enum Event: Sendable {
        case sample(TopSample, info: JSON)
        case output(Int64, String)
        case message(String)
        case screen(ScreenEvent)
    }

    /// What the task that talks to the daemon does next.
    private enum Request: Sendable {
        case sample
        case change(Int64, JobClient.Change)
        case output(Int64)
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
        // If events come faster than they are shown, the newest count; of keys that the daemon does not answer, the oldest.
        let (events, continuation) = AsyncStream.makeStream(of: Event.self, bufferingPolicy: .bufferingNewest(64))
        let (requests, ask) = AsyncStream.makeStream(of: Request.self, bufferingPolicy: .bufferingOldest(16))
        let sources = ScreenEventSources(keys: screen.keys) { continuation.yield(.screen($0)) }
        defer {
            // What is typed from now on is for the shell.
            sources.stopReading()
            screen.leave()
            sources.cancel()
        }
        try screen.enter()
        return try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await serve(requests, continuation) }
            group.addTask {
                while true {
                    ask.yield(.sample)
                    try await Task.sleep(for: interval)
                }
            }
            let page = TopPage(format: console.format)
            var (view, control) = (TopView(message: "asking the daemon"), TopControl())
            // The number of samples that a message stays for.
            var patience = 0
            defer { group.cancelAll() }
            for await event in events {
                switch event {
                case .sample(let sample, let identity):
                    patience -= 1
                    if patience < 0 { view.message = nil }
                    view.history.append(sample)
                    (view.info, view.tick) = (identity, view.tick + 1)
                    if case .output(let job) = control.mode { ask.yield(.output(job)) }
                case .output(let job, let text): view.output = (job, text)
                case .message(let text): (view.message, patience) = (text, max(1, Int(3 / (interval / .seconds(1)))))
                case .screen(.keys(let bytes)):
                    for key in Key.all(in: bytes) {
                        view.message = nil
                        let jobs = view.history.newest.map(control.shown) ?? []
                        switch control.press(key, on: jobs) {
                        case .quit: return nil
                        case .change(let job, let change): ask.yield(.change(job, change))
                        case .output(let job): ask.yield(.output(job))
                        case nil: break
                        }
                    }
                case .screen(.signal(SIGINT)): return nil
                case .screen(.signal(SIGTSTP)):
                    screen.leave()
                    // The process stops here, and SIGCONT comes next.
                    kill(getpid(), SIGSTOP)
                    continue
                case .screen(.signal(SIGCONT)): try screen.enter()
                case .screen(.signal(SIGWINCH)): break
                case .screen(.signal(let number)): return number
                }
                try screen.draw(page.lines(view, control, now: .now, size: ScreenSize(of: console.data)))
            }
            // Only an error of the task that talks to the daemon ends the events.
            try await group.next()
            return nil
        }
    }

    /// Carries out requests, even if the daemon restarts.
    private func serve(
        _ requests: AsyncStream<Request>, _ events: AsyncStream<Event>.Continuation
    ) async throws {
        defer { events.finish() }
        let connection = DaemonConnection(path: invocation.socket) { events.yield(.message($0)) }
        try await invocation.withDaemon { client in
            try await connection.keeping(client) { client in
                let info = try await client.info()
                for await request in requests {
                    switch request {
                    case .sample: break
                    case .output(let job): events.yield(.output(job, await client.lastOutput(of: job)))
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
                    if case .output = request { continue }
                    let rows = ScreenSize(of: invocation.console.data).rows
                    let sample = try await TopSample(from: client, rows: rows, withOthers: true)
                    events.yield(.sample(sample, info: info))
                }
            }
        }
    }
}
