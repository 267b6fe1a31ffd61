import ArgumentParser
import JobClient
import JobModel

/// Lists jobs.
struct ListCommand: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List jobs, the newest first.",
        discussion: """
            AGE is the time since a job was submitted; DETAIL tells how far a running job is, when a scheduled one \
            goes on, how large a result is, and why a failed one failed.

            Example: deferctl list --state running --state queued --tag tools
            """)

    @Option(
        name: .long, parsing: .singleValue,
        help: ArgumentHelp("Only jobs in this state; may be given again for more.", valueName: "state"))
    var state: [State] = []

    @Option(
        name: .long, help: ArgumentHelp("Only jobs of this queue.", valueName: "name"),
        completion: LiveCompletion.queues)
    var queue: String?

    @Option(
        name: .long, help: ArgumentHelp("Only jobs with this tag.", valueName: "text"), completion: LiveCompletion.tags)
    var tag: String?

    @Option(
        name: .long, help: ArgumentHelp("Only jobs with a source of this type, such as download.", valueName: "type"),
        completion: .list(SourceType.allCases.map(\.rawValue)))
    var source: String?

    @Option(
        name: .long, help: ArgumentHelp("The children of this job, and no others.", valueName: "id"),
        completion: LiveCompletion.jobs)
    var parent: Int64?

    @Flag(name: .long, help: "List the oldest first.")
    var oldest = false

    @Option(
        name: .long, help: ArgumentHelp("Begin behind the job with this id.", valueName: "id"),
        completion: LiveCompletion.jobs)
    var after: Int64?

    @Option(name: .long, help: ArgumentHelp("List at most so many jobs (default: 100).", valueName: "count"))
    var limit: Int?

    @Flag(name: .long, help: "List all jobs, however many there are.")
    var all = false

    /// The states of `--state`.
    enum State: String, ExpressibleByArgument, CaseIterable {
        case scheduled, queued, running, succeeded, failed, cancelled
    }

    func validate() throws {
        if all, limit != nil { throw ValidationError("Give either --all or --limit, not both.") }
        if let limit, limit < 1 { throw ValidationError("--limit must be at least 1.") }
    }

    private var filter: JobClient.Filter {
        var filter = JobClient.Filter()
        filter.states = state.map(\.rawValue)
        filter.queue = queue
        filter.tag = tag
        filter.source = source
        filter.parent = parent
        filter.isOldestFirst = oldest
        return filter
    }

    @OptionGroup var global: GlobalOptions

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        try await invocation.withDaemon { client in
            var rest = all ? Int.max : limit ?? 100
            var after = after
            var isFirst = true
            while true {
                let page = try await client.list(filter, after: after, limit: min(rest, all ? 500 : 1000))
                try write(page.jobs, invocation, showsHead: isFirst)
                if isFirst, page.jobs.isEmpty, page.next == nil, invocation.console.showsData, !invocation.writesJSON {
                    invocation.console.say("\(emptySentence) Submit one with: deferctl fetch URL")
                }
                rest -= page.jobs.count
                guard let next = page.next else { return .ok }
                guard rest > 0, !page.jobs.isEmpty else {
                    invocation.console.say("There are more jobs; see all with --all, or the next with --after \(next)")
                    return .ok
                }
                after = next
                isFirst = false
            }
        }
    }

    /// What an empty list means; a mistyped queue or tag has no jobs either.
    private var emptySentence: String {
        let filters = [queue, tag, source].contains { $0 != nil } || !state.isEmpty || parent != nil || after != nil
        return filters ? "No job of yours fits; see all with: deferctl list." : "You have no jobs."
    }

    private func write(_ jobs: [JobSnapshot], _ invocation: Invocation, showsHead: Bool) throws {
        let console = invocation.console
        if invocation.writesJSON {
            return try console.data.write(Array(jobs.map { $0.json.utf8 + [UInt8(ascii: "\n")] }.joined()))
        }
        if jobs.isEmpty { return }
        try console.lines(
            JobTable.lines(
                jobs, now: .now, width: console.width, isUnicode: console.isUnicode, showsHead: showsHead,
                palette: console.palette))
    }
}
