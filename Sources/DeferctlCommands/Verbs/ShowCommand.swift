import ArgumentParser
import JobClient
import JobModel

/// Draws a job with its links and children.
struct ShowCommand: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Show a job: its links with their states, times and errors, and the children of its lists.",
        discussion: """
            With --json the job object is printed, and each of the children shown behind it.

            Example: deferctl show 12
            """)

    @Option(
        name: .long,
        help: ArgumentHelp("Show at most so many children of one job.", valueName: "count"))
    var children = 50

    @OptionGroup var global: GlobalOptions

    @Argument(help: ArgumentHelp("The job's id.", valueName: "id"), completion: LiveCompletion.jobs)
    var job: Int64

    func validate() throws {
        guard (0...1000).contains(children) else { throw ValidationError("--children must be from 0 to 1000.") }
    }

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        let family = try await invocation.withDaemon { client in
            var room = JobFamily.limit
            return try await JobFamily(of: try await client.get(job), perJob: children, room: &room, from: client)
        }
        let console = invocation.console
        if invocation.writesJSON {
            for job in family.all { try console.line(job.json) }
        } else {
            let tree = JobTree(
                now: .now, isUnicode: console.isUnicode, width: console.width, palette: console.palette)
            try console.lines(tree.lines(family))
        }
        return .ok
    }
}
