import ArgumentParser
import FoundationEssentials
import Glibc
import JobClient
import JobModel

struct WatchCommand: DaemonCommand {
    static let configuration = verb(
        "watch", "Show live what happens to jobs; without ids, to all of them.", example: "deferctl watch 12 13",
        """
        Named jobs are watched until all are finished, everything else until Ctrl-C; the jobs go on either way. If a \
        job does not exist, the others are still watched, and the exit status is 65. With --json, every notification \
        is a line on standard output; those with seq 0 show the jobs at the beginning.
        """)

    @Option(help: .value("text", "Watch all jobs with this tag, also new ones."), completion: LiveCompletion.tags)
    var tag: String?

    @Option(help: .value("seconds", "Seconds between two progress reports of a job (default: 0.25)."))
    var interval: WrittenDuration?

    @Flag(help: "Show the children of lists too.") var children = false
    @Flag(help: "Tell of each end by a desktop notification, or else by the terminal's bell.") var notify = false
    @OptionGroup var global: GlobalOptions
    @Argument(help: .value("id", "The ids of the jobs."), completion: LiveCompletion.jobs) var jobs: [Int64] = []

    func validate() throws {
        if tag != nil, !jobs.isEmpty { throw ValidationError("Use either --tag or ids of jobs, not both.") }
    }

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        let watching = Watching(invocation: invocation, interval: interval?.seconds, showsChildren: children) {
            notify ? EndNotifier.tell(of: $0, on: invocation.console) : nil
        }
        if let tag { return try await watching.watch(.tag(tag), comeBack: "watch --tag \(tag.shellQuoted)") }
        if jobs.isEmpty { return try await watching.watch(.all, comeBack: "watch") }
        return try await watching.watch(jobs)
    }
}

struct WaitCommand: DaemonCommand {
    static let configuration = verb(
        "wait", "Wait until jobs are finished, and print how each ended.",
        example: "deferctl submit jobs.jsonl | xargs deferctl wait --timeout 600",
        """
        The exit status is that of the worst job: 65 if there is no such job, else 1 if one failed, else 2 if one was \
        cancelled, else 0. With a range or conditions, only the numbers of jobs by state are printed; jobs submitted \
        later are not waited for.
        """)

    @Option(help: .value("duration", "How long to wait at most, such as 90 or 10m; then, the exit status is 75."))
    var timeout: WrittenDuration?
    @OptionGroup var global: GlobalOptions
    @OptionGroup var selection: JobSelection

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        let deadline = timeout.map { ContinuousClock.now + .seconds($0.seconds) }
        @Sendable func rest() -> Double? {
            deadline.map { max(0, (ContinuousClock.now.duration(to: $0)) / .seconds(1)) }
        }
        switch try selection.jobs {
        case .jobs(let jobs):
            let interruption = Interruption(from: "wait", jobs: jobs, by: invocation.socket.command)
            let (ended, missing) = try await invocation.withDaemon(interruption) {
                try await invocation.connection(until: deadline).keeping($0, jobs) { client, present in
                    try await client.wait(present, timeout: rest(), isWhole: invocation.writesJSON)
                }
            }
            let finished = ended ?? []
            try invocation.show(finished.map(\.json), as: finished.map { "\($0.id) \($0.state.sanitized)" })
            return .worst(missing + finished.map { invocation.report($0) })
        case .matching(let filter):
            let ends = ["succeeded", "failed", "cancelled"]
            let interruption = Interruption(farewell: "Detached; the jobs go on.")
            let (answer, missing) = try await invocation.withDaemon(interruption) { client -> (JSON, [ExitStatus]) in
                let connection = invocation.connection(until: deadline)
                if filter.states.allSatisfy({ JobState(rawValue: $0)?.isTerminal ?? false }) {
                    let answer = try await connection.keeping(client) {
                        try await $0.wait(forAll: filter, timeout: rest())
                    }
                    return (answer, [])
                }
                // When the daemon comes back from a restart, these jobs may have left the states that were asked for.
                let jobs = try await connection.keeping(client) { try await $0.ids(of: filter) }
                var counts: [String: Int] = [:]
                let missing = try await connection.keeping(client, jobs) { client, open in
                    while !open.isEmpty {
                        let part = Array(open.prefix(1000))
                        let finished = try await client.wait(part, timeout: rest(), isWhole: false)
                        for job in finished { counts[job.state, default: 0] += 1 }
                        open.removeFirst(part.count)
                    }
                }.missing
                let members = ends.map { ($0, JSON(counts[$0, default: 0])) }
                return (.object(members.reduce(into: JSONObject()) { $0.append($1.0, $1.1) }), missing)
            }
            let counts = ends.map { ($0, answer[$0]?.int ?? 0) }.filter { $1 > 0 }
            let words = counts.map { "\($1) \($0)" }.joined(separator: ", ")
            try invocation.show([answer], as: counts.isEmpty ? [] : [words])
            if counts.isEmpty, missing.isEmpty {
                invocation.console.say("No job matches; see your jobs with: \(invocation.socket.command) list")
            }
            return .worst(missing + counts.map { ExitStatus(jobState: $0.0) })
        }
    }
}

extension JobClient {
    /// The ids of all jobs that match: of the caller, or of the owner in the filter.
    fileprivate func ids(of filter: Filter) async throws(JobClientError) -> [Int64] {
        var (ids, after) = ([Int64](), Int64?.none)
        repeat {
            let page = try await list(filter, after: after, limit: 1000)
            ids += page.jobs.filter { filter.owner != nil || !$0.isOfOther }.map(\.id)
            after = page.jobs.isEmpty ? nil : page.next
        } while after != nil
        return ids
    }
}

/// Tells the user that jobs have ended: by desktop notifications, or else by the terminal's bell and a sentence.
enum EndNotifier {
    /// Whether there is a session that shows what `notify-send` sends.
    private static let hasDesktop = {
        let variables = ProcessInfo.processInfo.environment
        // Nothing waits for the programs that show notifications.
        signal(SIGCHLD, SIG_IGN)
        return variables["DBUS_SESSION_BUS_ADDRESS"] != nil
            || variables["XDG_RUNTIME_DIR"].map { access("\($0)/bus", F_OK) == 0 } ?? false
    }()

    /// The sentence to write if the event tells of an end that no notification was sent for.
    static func tell(of event: JobEvent, on console: Console) -> String? {
        guard case .state(let job) = event.change, job.isFinished else { return nil }
        let (head, body) = ("Job \(job.id) \(job.state.sanitized)", JobText(job, now: .now).title)
        if hasDesktop, send(head, body) { return nil }
        if console.showsMessages { try? console.messages.write("\u{7}") }
        return "\(head): \(body)"
    }

    private static func send(_ head: String, _ body: String) -> Bool {
        var words =
            ["notify-send", "--app-name=deferd", "--", head, body].map { (word: String) in strdup(word) } + [nil]
        defer { for word in words { free(word) } }
        var process = pid_t()
        return posix_spawnp(&process, "notify-send", nil, nil, &words, environ) == 0
    }
}
