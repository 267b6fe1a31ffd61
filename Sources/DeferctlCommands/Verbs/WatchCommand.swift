import ArgumentParser
import JobClient
import JobModel

/// Shows live what happens to jobs.
struct WatchCommand: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "watch", abstract: "Show live what happens to jobs; without ids, to all of them.",
        discussion: """
            Named jobs are watched until all are finished, everything else until Ctrl-C; the jobs go on either way. \
            Where one is not there, the others are watched all the same, and the exit status is 65. \
            With --json every notification is a line on standard output; those with seq 0 tell how a job stood when \
            the watch began.

            Example: deferctl watch 12 13
            """)

    @Option(help: .value("text", "Watch all jobs with this tag, later ones too."), completion: LiveCompletion.tags)
    var tag: String?

    @Option(help: .value("seconds", "Seconds between two reports of a job's progress (default: 0.25)."))
    var interval: Double?

    @Flag(help: "Show the children of lists too.") var children = false
    @OptionGroup var global: GlobalOptions
    @Argument(help: .value("id", "The ids of the jobs."), completion: LiveCompletion.jobs) var jobs: [Int64] = []

    func validate() throws {
        if tag != nil, !jobs.isEmpty { throw ValidationError("Give either --tag or ids of jobs, not both.") }
        if let interval, !interval.isFinite || interval < 0 {
            throw ValidationError("--interval must be a number of seconds.")
        }
    }

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        let watching = Watching(invocation: invocation, interval: interval, showsChildren: children)
        if let tag { return try await watching.watch(.tag(tag), comeBack: "deferctl watch --tag \(tag)") }
        if jobs.isEmpty { return try await watching.watch(.all, comeBack: "deferctl watch") }
        return try await watching.watch(jobs)
    }
}

/// Shows people, or programs, what happens to jobs.
struct Watching: Sendable {
    let invocation: Invocation
    var interval: Double?
    var showsChildren = false

    /// Watches these jobs until all are finished, and returns how the worst of them ended.
    func watch(_ jobs: [Int64]) async throws -> ExitStatus {
        let format = invocation.console.messageFormat
        let display: any ProgressDisplay =
            jobs.count == 1 && !showsChildren
            ? BarDisplay(job: jobs[0], isUnicode: format.isUnicode) : TableDisplay(format, forgets: false)
        let ending = try await show(with: display, Interruption(from: "watch", jobs: jobs)) { follower, client in
            try await follower.follow(jobs, with: client)
        }
        return .worst(ending.missing + ending.finished.map(invocation.report))
    }

    /// Watches what `selection` covers until Ctrl-C.
    func watch(_ selection: JobClient.WatchSelection, comeBack: String) async throws -> ExitStatus {
        let display = TableDisplay(invocation.console.messageFormat, forgets: true)
        let interruption = Interruption(farewell: "Detached; the jobs go on. Come back with: \(comeBack)")
        try await show(with: display, interruption) { try await $0.follow(selection, with: $1) }
        return .ok
    }

    /// Shows what happens as JSON, by `display` on a terminal, or as lines elsewhere.
    private func show<Value: Sendable>(
        with display: any ProgressDisplay, _ interruption: Interruption,
        _ body: @Sendable @escaping (JobFollower, JobClient) async throws -> Value
    ) async throws -> Value {
        let console = invocation.console
        return try await interruption.run {
            try await invocation.withDaemon { client in
                guard invocation.writesJSON else {
                    return try await JobFollower.showing(
                        console.showsMessages ? display : StepLines(), of: invocation, interval: interval,
                        children: showsChildren
                    ) { try await body($0, client) }
                }
                let follower = JobFollower(
                    connection: invocation.connection, interval: interval, showsChildren: showsChildren,
                    show: { try console.line($0.json) })
                return try await body(follower, client)
            }
        }
    }
}
