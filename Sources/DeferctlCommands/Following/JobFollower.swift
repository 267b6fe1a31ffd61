import JobClient
import JobModel

/// Follows jobs to their end.
struct JobFollower: Sendable {
    let connection: DaemonConnection
    /// The pause between two progress events of a job, in seconds.
    var interval: Double?
    var showsChildren = false
    let show: @Sendable (JobEvent, JobClient) async throws -> Void

    /// Runs `body` with a follower that shows events by `display` on a terminal, and as lines elsewhere.
    /// Until the program of `output` writes, if there is one, and silent elsewhere.
    static func showing<Value: Sendable>(
        _ display: any ProgressDisplay, of invocation: Invocation, interval: Double? = nil, children: Bool = false,
        before output: OutputFollower? = nil, notifier: EndNotifier? = nil,
        _ body: @Sendable @escaping (JobFollower) async throws -> Value
    ) async throws -> Value {
        let console = invocation.console
        let screen = ProgressScreen(
            console: console, display: console.showsMessages ? display : StepLines(isSilent: output != nil))
        let follower = JobFollower(
            connection: DaemonConnection(path: invocation.socket) { await screen.say($0) }, interval: interval,
            showsChildren: children,
            show: { event, client in
                guard let output else {
                    await screen.show(event)
                    if let text = notifier?.tell(of: event, on: console) { await screen.say(text) }
                    return await screen.showLine(of: event, from: client)
                }
                guard event.job == output.job else { return }
                if event.endsDisplay { await screen.finish() } else { await screen.show(event) }
                try await output.receive(event.change, from: client)
            })
        return try await screen.showing { try await body(follower) }
    }

    /// Follows these jobs to their end, and returns them in the same order. Missing jobs are reported, with a status for each.
    func follow(
        _ jobs: [Int64], with client: JobClient
    ) async throws -> (finished: [JobSnapshot], missing: [ExitStatus]) {
        var finished: [Int64: JobSnapshot] = [:]
        let missing = try await connection.keeping(client, jobs) { client, open in
            try await watch(.jobs(Set(open).sorted()), with: client) { event in
                if case .state(let snapshot) = event.change, snapshot.isFinished, open.contains(snapshot.id) {
                    open.removeAll { $0 == snapshot.id }
                    finished[snapshot.id] = snapshot
                }
                return !open.isEmpty
            }
        }.missing
        return (jobs.compactMap { finished[$0] }, missing)
    }

    /// Follows what `selection` covers until the task is cancelled.
    func follow(_ selection: JobClient.WatchSelection, with client: JobClient) async throws {
        try await connection.keeping(client) { client in
            try await watch(selection, with: client) { _ in true }
        }
    }

    /// Shows events while `goesOn` is true.
    private func watch(
        _ selection: JobClient.WatchSelection, with client: JobClient, _ goesOn: (JobEvent) -> Bool
    ) async throws {
        let watch = try await client.watch(selection, interval: interval, children: showsChildren)
        var isGoingOn = true
        for job in watch.jobs {
            let event = JobEvent(watch: watch.id, job: job.id, .state(job))
            isGoingOn = goesOn(event)
            try await show(event, client)
        }
        guard isGoingOn else { return }
        for try await event in client.notifications where event.watch == watch.id {
            isGoingOn = goesOn(event)
            try await show(event, client)
            if !isGoingOn { return }
        }
        throw CancellationError()
    }
}

extension JobEvent {
    /// Whether it ends the display before a program's output.
    fileprivate var endsDisplay: Bool {
        switch change {
        case .output: true
        case .state(let snapshot): snapshot.isFinished
        case .progress: false
        }
    }
}
