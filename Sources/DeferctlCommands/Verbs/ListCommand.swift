import ArgumentParser
import JobClient
import JobModel

struct ListCommand: DaemonCommand {
    static let configuration = verb(
        "list", "List jobs, the newest first.", example: "deferctl list --state running --state queued --tag tools",
        """
        AGE is the time since a job was submitted. DETAIL is the progress of a running job, the next attempt of a \
        scheduled one, the size of a result, or the error of a failed job.
        """)

    @Option(parsing: .singleValue, help: .value("state", "Only jobs in this state; may be repeated."))
    var state: [State] = []

    @Option(help: .value("name", "Only jobs of this queue."), completion: LiveCompletion.queues) var queue: String?
    @Option(help: .value("text", "Only jobs with this tag."), completion: LiveCompletion.tags) var tag: String?

    @Option(
        help: .value("type", "Only jobs with a source of this type, such as download."),
        completion: .list(SourceType.allCases.map(\.rawValue)))
    var source: String?

    @Option(help: .value("id", "Only the children of this job."), completion: LiveCompletion.jobs)
    var parent: Int64?

    @Flag(help: "List the oldest first.") var oldest = false
    @Option(help: .value("id", "Start after the job with this id."), completion: LiveCompletion.jobs) var after: Int64?

    @Option(help: .value("count", "List at most this many jobs (default: 100)."), transform: whole(1...Int.max))
    var limit: Int?

    @Flag(help: "List all jobs, however many there are.") var all = false
    @OptionGroup var global: GlobalOptions

    enum State: String, ExpressibleByArgument, CaseIterable {
        case scheduled, queued, running, succeeded, failed, cancelled
    }

    func validate() throws {
        if all, limit != nil { throw ValidationError("Use either --all or --limit, not both.") }
    }

    private var filter: JobClient.Filter {
        var filter = JobClient.Filter()
        (filter.states, filter.queue, filter.tag) = (state.map(\.rawValue), queue, tag)
        (filter.source, filter.parent, filter.isOldestFirst) = (source, parent, oldest)
        return filter
    }

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        try await invocation.withDaemon { client in
            var rest = all ? Int.max : limit ?? 100
            var after = after
            var isFirst = true
            while true {
                let page = try await client.list(filter, after: after, limit: min(rest, all ? 500 : 1000))
                let table = JobTable.lines(page.jobs, now: .now, invocation.console.format, showsHead: isFirst)
                try invocation.show(page.jobs.map(\.json), as: page.jobs.isEmpty ? [] : table)
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

    /// The meaning of an empty list; a mistyped queue or tag has no jobs either.
    private var emptySentence: String {
        let isFiltered = [queue, tag, source].contains { $0 != nil } || !state.isEmpty || parent != nil || after != nil
        return isFiltered ? "None of your jobs matches; see all with: deferctl list." : "You have no jobs."
    }
}
