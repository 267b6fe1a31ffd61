import ArgumentParser
import JobClient
import JobModel

struct ShowCommand: DaemonCommand {
    static let configuration = verb(
        "show", "Show a job: its links with their states, times and errors, and the children of its lists.",
        example: "deferctl show 12",
        """
        With --json, the job object is printed, followed by the children.
        """)

    @Option(help: .value("count", "Show at most this many children of each job."), transform: whole(0...1000))
    var children = 50
    @OptionGroup var global: GlobalOptions
    @Argument(help: .value("id", "The job's id."), completion: LiveCompletion.jobs) var job: Int64

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        let (family, output) = try await invocation.withDaemon { client in
            var room = JobFamily.limit
            let family = try await JobFamily(
                of: try await client.get(job), perJob: children, room: &room, from: client)
            let isInterrupted = family.job.error?["kind"] == "interrupted"
            return (family, isInterrupted ? await client.lastOutput(of: job) : "")
        }
        let tree = JobTree(now: .now, format: invocation.console.format)
        return try invocation.show(family.all.map(\.json), as: tree.lines(family, output: JobText.lastLines(output)))
    }
}

/// A job with the children of its lists, and their children.
struct JobFamily: Sendable {
    static let limit = 1000

    let job: JobSnapshot
    var children: [JobFamily] = []
    /// The number of all children, shown or not.
    var count = 0

    var hidden: Int { max(0, count - children.count) }

    /// All jobs of the family, each before its children.
    var all: [JobSnapshot] { [job] + children.flatMap(\.all) }
}

extension JobFamily {
    /// Asks the daemon for the children of `job`, at most `perJob` of each job and `room` in all.
    init(of job: JobSnapshot, perJob: Int, room: inout Int, from client: JobClient) async throws(JobClientError) {
        self.job = job
        count = job.json["children"]?.int ?? 0
        let wanted = min(perJob, room)
        guard count > 0, wanted > 0 else { return }
        var filter = JobClient.Filter()
        filter.parent = job.id
        filter.isOldestFirst = true
        var found: [JobSnapshot] = []
        var after: Int64?
        // A page of large jobs can end early.
        repeat {
            let page = try await client.list(filter, after: after, limit: wanted - found.count)
            found += page.jobs
            after = page.jobs.isEmpty ? nil : page.next
        } while after != nil && found.count < wanted
        room -= found.count
        for child in found {
            children.append(try await JobFamily(of: child, perJob: perJob, room: &room, from: client))
        }
    }
}
