import JobClient

/// A live view of jobs, or JSON for programs.
struct Watching: Sendable {
    let invocation: Invocation
    var interval: Double?
    var showsChildren = false
    /// The output of a job's program, which replaces the view of the job.
    var output: OutputFollower?
    /// A message about an event, printed after the event is shown; nil for none.
    var tell: @Sendable (JobEvent) -> String? = { _ in nil }

    /// Watches these jobs until all are finished, and returns the worst status.
    func watch(_ jobs: [Int64]) async throws -> ExitStatus {
        let single = jobs.count == 1 && !showsChildren ? jobs[0] : nil
        let interruption = Interruption(from: "watch", jobs: jobs, by: invocation.socket.command)
        let ending = try await show(with: display(of: single), interruption) {
            try await $0.follow(jobs, with: $1)
        }
        return .worst(ending.missing + ending.finished.map { invocation.report($0) })
    }

    /// Watches what `selection` covers until Ctrl-C.
    func watch(_ selection: JobClient.WatchSelection, comeBack: String) async throws -> ExitStatus {
        let interruption = Interruption(
            farewell: "Detached; the jobs go on. Come back with: \(invocation.socket.command) \(comeBack)")
        try await show(with: display(forgets: true), interruption) { try await $0.follow(selection, with: $1) }
        return .ok
    }

    private func display(of job: Int64? = nil, forgets: Bool = false) -> JobsDisplay? {
        let console = invocation.console
        return invocation.writesJSON
            ? nil
            : JobsDisplay(
                format: console.messageFormat, isLog: !console.showsMessages, job: job, keepsLine: job != nil,
                forgets: forgets)
    }

    /// Connects, and runs `body` with a follower until a signal interrupts it.
    func show<Value: Sendable>(
        with display: JobsDisplay?, _ interruption: Interruption,
        _ body: @Sendable @escaping (JobFollower, JobClient) async throws -> Value
    ) async throws -> Value {
        try await invocation.withDaemon(interruption) { client in
            try await showing(display) { try await body($0, client) }
        }
    }

    /// Runs `body` with a follower that shows events by `display`, or without one writes them as JSON.
    func showing<Value: Sendable>(
        _ display: JobsDisplay?, _ body: @Sendable @escaping (JobFollower) async throws -> Value
    ) async throws -> Value {
        let console = invocation.console
        guard let display else {
            return try await body(
                JobFollower(connection: invocation.connection, interval: interval, showsChildren: showsChildren) {
                    event, _ in
                    try console.line(event.json)
                    if let text = tell(event) { console.say(text) }
                })
        }
        let screen = ProgressScreen(console: console, display: display)
        let connection = DaemonConnection(path: invocation.socket.path) { await screen.say($0) }
        let follower = JobFollower(connection: connection, interval: interval, showsChildren: showsChildren) {
            event, client in
            guard let output else {
                await screen.show(event)
                if let text = tell(event) { await screen.say(text) }
                return await screen.showLine(of: event, from: client)
            }
            guard event.job == output.job else { return }
            if event.endsDisplay { await screen.finish() } else { await screen.show(event) }
            try await output.receive(event.change, from: client)
        }
        return try await screen.showing { try await body(follower) }
    }
}

extension JobEvent {
    /// Whether it ends the display before a program's output.
    fileprivate var endsDisplay: Bool {
        if case .state(let snapshot) = change { snapshot.isFinished } else { isOutput }
    }
}
