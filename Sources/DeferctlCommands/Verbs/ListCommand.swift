import ArgumentParser
import JobClient
import JobModel

/// Lists jobs.
struct ListCommand: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List jobs, the newest first.",
        discussion: """
            AGE is the time since a job was submitted; DETAIL tells how far a running job is, when a scheduled one \
            goes on, how large a result is, and why a failed one failed.

            Example: deferctl list --state running --state queued --tag tools
            """)

    @Option(parsing: .singleValue, help: .value("state", "Only jobs in this state; may be given again for more."))
    var state: [State] = []

    @Option(help: .value("name", "Only jobs of this queue."), completion: LiveCompletion.queues) var queue: String?
    @Option(help: .value("text", "Only jobs with this tag."), completion: LiveCompletion.tags) var tag: String?

    @Option(
        help: .value("type", "Only jobs with a source of this type, such as download."),
        completion: .list(SourceType.allCases.map(\.rawValue)))
    var source: String?

    @Option(help: .value("id", "The children of this job, and no others."), completion: LiveCompletion.jobs)
    var parent: Int64?

    @Flag(help: "List the oldest first.") var oldest = false
    @Option(help: .value("id", "Begin behind the job with this id."), completion: LiveCompletion.jobs) var after: Int64?
    @Option(help: .value("count", "List at most so many jobs (default: 100).")) var limit: Int?
    @Flag(help: "List all jobs, however many there are.") var all = false

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

    /// What an empty list means; a mistyped queue or tag has no jobs either.
    private var emptySentence: String {
        let filters = [queue, tag, source].contains { $0 != nil } || !state.isEmpty || parent != nil || after != nil
        return filters ? "No job of yours fits; see all with: deferctl list." : "You have no jobs."
    }

}

/// Jobs as rows of a table.
enum JobTable {
    /// The table of `jobs` as they are at `now`, line by line.
    static func lines(
        _ jobs: [JobSnapshot], now: Timestamp, _ format: TextFormat = TextFormat(), showsHead: Bool = true
    ) -> [String] {
        var table = Table([
            .number("JOB"), Table.Column("STATE"), Table.Column("DETAIL", cut: .end, rank: 1),
            .number("AGE", rank: 2), Table.Column("QUEUE", cut: .end, least: 7, rank: 3),
            Table.Column("WHAT", cut: .middle, least: 14),
        ])
        for job in jobs {
            let text = JobText(job, now: now)
            table.append([
                StyledText(String(job.id)), StyledText(job.state.sanitized, TextStyle(state: job.state)),
                StyledText(text.detail, job.state == "failed" ? .bad : .plain),
                StyledText(text.age.map(Quantities.age) ?? ""), StyledText(job.json.text("queue") ?? ""),
                StyledText(text.title),
            ])
        }
        return table.lines(format, showsHead: showsHead)
    }
}
