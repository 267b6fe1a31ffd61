import ArgumentParser
import JobClient
import JobModel

struct ListCommand: DaemonCommand {
    static let configuration = verb(
        "list", "List jobs, the newest first.", example: "deferctl list --state running --state queued --tag tools",
        """
        AGE is the time since a job was submitted. DETAIL is the progress of a running job, what a job waits for, the \
        size of a result, or the error of a failed job. OWNER is shown when there are jobs of others.
        """)

    @Option(help: .value("id", "Only the children of this job."), completion: LiveCompletion.jobs)
    var parent: Int64?

    @Flag(help: "List the oldest first.") var oldest = false
    @Option(help: .value("id", "Start after the job with this id."), completion: LiveCompletion.jobs) var after: Int64?

    @Option(help: .value("count", "List at most this many jobs (default: 100)."), transform: whole(1...Int.max))
    var limit: Int?

    @Flag(help: "List all jobs, however many there are.") var all = false
    @OptionGroup var global: GlobalOptions

    @OptionGroup(title: "Conditions") var names: NameConditions
    @OptionGroup(title: "Conditions") var conditions: JobConditions

    @Argument(help: .value("id", "The id of a job, or a range of ids, such as 3-9."), completion: LiveCompletion.jobs)
    var ids: IDRange?

    func validate() throws {
        if all, limit != nil { throw ValidationError("Use either --all or --limit, not both.") }
    }

    private var filter: JobClient.Filter {
        var filter = conditions.filter(queue: names.queue, tag: names.tag, label: names.label)
        (filter.ids, filter.parent, filter.isOldestFirst) = (ids?.ids, parent, oldest)
        return filter
    }

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        try await invocation.withDaemon { client in
            var rest = all ? Int.max : limit ?? 100
            var after = after
            var (first, showsOwners) = ([JobSnapshot](), false)
            while true {
                let page = try await client.list(filter, after: after, limit: min(rest, all ? 500 : 1000))
                showsOwners = showsOwners || page.jobs.contains(where: \.isOfOther)
                // The first page counts for the widths of all columns.
                let rows = first + page.jobs
                let table = JobTable.lines(rows, now: .now, invocation.console.format, showsOwners: showsOwners)
                    .dropFirst(first.isEmpty ? 0 : first.count + 1)
                try invocation.show(page.jobs.map(\.json), as: page.jobs.isEmpty ? [] : Array(table))
                if rows.isEmpty, page.next == nil, invocation.console.showsData, !invocation.writesJSON {
                    invocation.console.say("\(emptySentence) Submit one with: deferctl fetch URL")
                }
                rest -= page.jobs.count
                guard let next = page.next else { return .ok }
                guard rest > 0, !page.jobs.isEmpty else {
                    invocation.console.say("There are more jobs; see all with --all, or the next with --after \(next)")
                    return .ok
                }
                (after, first) = (next, first.isEmpty ? rows : first)
            }
        }
    }

    /// The meaning of an empty list; a mistyped queue or tag has no jobs either.
    private var emptySentence: String {
        let isFiltered = filter != JobClient.Filter(isOldestFirst: oldest) || after != nil
        return isFiltered ? "None of your jobs matches; see all with: deferctl list." : "You have no jobs."
    }
}

struct ShowCommand: DaemonCommand {
    static let configuration = verb(
        "show", "Show a job: its links with their states, times and errors, and the children of its lists.",
        example: "deferctl show 12",
        "With --json, the job object is printed, followed by the children.")

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
        let filter = JobClient.Filter(parent: job.id, isOldestFirst: true)
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
