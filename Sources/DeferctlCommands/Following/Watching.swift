import JobClient
import JobModel

/// Shows people, or programs, what happens to jobs.
struct Watching: Sendable {
    let invocation: Invocation
    var interval: Double?
    var showsChildren = false

    /// Watches these jobs until all are finished, and returns how the worst of them ended.
    func watch(_ jobs: [Int64]) async throws -> ExitStatus {
        let interruption = Interruption(from: "watch", jobs: jobs)
        let console = invocation.console
        let display: any ProgressDisplay =
            if !console.showsMessages {
                StepLines()
            } else if jobs.count == 1, let job = jobs.first, !showsChildren {
                BarDisplay(job: job, isUnicode: console.isUnicode)
            } else {
                TableDisplay(isUnicode: console.isUnicode, forgets: false, palette: console.messagePalette)
            }
        let ending = try await interruption.run {
            try await show(with: display) { follower, client in
                try await follower.follow(jobs, with: client)
            }
        }
        return .worst(ending.missing + ending.finished.map(invocation.report))
    }

    /// Watches what `selection` covers until Ctrl-C.
    func watch(_ selection: JobClient.WatchSelection, comeBack: String) async throws -> ExitStatus {
        let interruption = Interruption(farewell: "Detached; the jobs go on. Come back with: \(comeBack)")
        let console = invocation.console
        let display: any ProgressDisplay =
            console.showsMessages
            ? TableDisplay(isUnicode: console.isUnicode, forgets: true, palette: console.messagePalette) : StepLines()
        try await interruption.run {
            try await show(with: display) { follower, client in
                try await follower.follow(selection, with: client)
            }
        }
        return .ok
    }

    private func show<Value: Sendable>(
        with display: any ProgressDisplay,
        _ body: @Sendable @escaping (JobFollower, JobClient) async throws -> Value
    ) async throws -> Value {
        let console = invocation.console
        return try await invocation.withDaemon { client in
            if invocation.writesJSON {
                let connection = DaemonConnection(path: invocation.socket) { console.say($0) }
                let follower = JobFollower(
                    connection: connection, interval: interval, showsChildren: showsChildren,
                    show: { try console.line($0.json) })
                return try await body(follower, client)
            }
            let screen = ProgressScreen(console: console, display: display)
            let connection = DaemonConnection(path: invocation.socket) { await screen.say($0) }
            let follower = JobFollower(
                connection: connection, interval: interval, showsChildren: showsChildren,
                show: { await screen.show($0) })
            return try await screen.showing { try await body(follower, client) }
        }
    }
}
