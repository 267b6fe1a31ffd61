import ArgumentParser
import JobClient

/// Shows live what happens to jobs.
struct WatchCommand: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "watch",
        abstract: "Show live what happens to jobs; without ids, to all of them.",
        discussion: """
            Named jobs are watched until all are finished, everything else until Ctrl-C; the jobs go on either way. \
            Where one is not there, the others are watched all the same, and the exit status is 65. \
            With --json every notification is a line on standard output; those with seq 0 tell how a job stood when \
            the watch began.

            Example: deferctl watch 12 13
            """)

    @Option(
        name: .long, help: ArgumentHelp("Watch all jobs with this tag, later ones too.", valueName: "text"),
        completion: LiveCompletion.tags)
    var tag: String?

    @Option(
        name: .long,
        help: ArgumentHelp("Seconds between two reports of a job's progress (default: 0.25).", valueName: "seconds"))
    var interval: Double?

    @Flag(name: .long, help: "Show the children of lists too.")
    var children = false

    @OptionGroup var global: GlobalOptions

    @Argument(help: ArgumentHelp("The ids of the jobs.", valueName: "id"), completion: LiveCompletion.jobs)
    var jobs: [Int64] = []

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
