import ArgumentParser
import FoundationEssentials
import JobClient
import JobModel

struct TopCommand: DaemonCommand {
    static let configuration = verb(
        "top", "Show live what the daemon does: its queues, running jobs, and rates.", example: "deferctl top",
        """
        On a terminal, it fills the screen until you press q or Ctrl-C, and other keys cancel, retry and hold jobs and \
        show their output; ? lists them. Elsewhere, it prints one sample; with --json, \
        it prints a sample per line until Ctrl-C, or as many as --count says.
        """)

    @Option(help: .value("seconds", "Seconds between two samples, at least 0.2 (default: 1)."))
    var interval: WrittenDuration?

    @Option(
        help: .value("number", "Print this many samples and end; never fill the screen."), transform: whole(1...Int.max)
    )
    var count: Int?

    @OptionGroup var global: GlobalOptions

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        let console = invocation.console
        let pause = Duration.seconds(max(0.2, interval?.seconds ?? 1))
        let isScreen = console.showsData && FileOutput.hasCursor(ProcessInfo.processInfo.environment)
        if isScreen, !invocation.writesJSON, count == nil {
            return try await TopScreen(invocation: invocation, interval: pause).run()
        }
        let looks = count ?? (invocation.writesJSON ? Int.max : 1)
        let interruption = Interruption(farewell: "Stopped. Look again with: \(invocation.socket.command) top")
        return try await invocation.withDaemon(interruption) { client in
            var (view, look) = (TopView(), 0)
            try await invocation.connection.keeping(client) { client in
                view.info = try await client.info()
                while look < looks {
                    let sample = try await TopSample(from: client, rows: TopSample.mostJobs)
                    view.append(sample)
                    let page = TopPage(view, console.format, now: .now, size: nil)
                    try invocation.show([sample.json], as: (look == 0 ? [] : [""]) + page.lines)
                    look += 1
                    if look < looks { try await Task.sleep(for: pause) }
                }
            }
            return .ok
        }
    }
}

/// What `deferctl top` shows of one moment: counts, queues, and running jobs.
///
/// It takes three calls, or four with other jobs, whose answers do not grow with the number of jobs, and one for each
/// program in `jobs` that the screen has a row for.
struct TopSample: Sendable {
    static let mostJobs = 200

    let stats: JSON
    let queues: [JSON]
    /// The newest running jobs, without children.
    let jobs: [JobSnapshot]
    /// The newest jobs that wait or failed, for a screen on which they can be selected.
    var others: [JobSnapshot] = []
    /// Whether these are all running jobs.
    var isComplete = false
    /// The last lines that the programs of these jobs have written.
    var lines: [Int64: String] = [:]

    var json: JSON { ["stats": stats, "queues": .array(queues), "jobs": .array(jobs.map(\.json))] }

    var uptime: Double? { stats["uptime"]?.double }
}

extension TopSample {
    init(from client: JobClient, rows: Int, withOthers: Bool = false) async throws(JobClientError) {
        var filter = JobClient.Filter(states: ["running"])
        stats = try await client.stats()
        queues = try await client.queues()
        let page = try await client.list(filter, limit: withOthers ? Self.mostJobs : min(Self.mostJobs, max(1, rows)))
        jobs = page.jobs
        isComplete = page.next == nil
        if withOthers {
            filter.states = ["held", "scheduled", "queued", "failed", "cancelled"]
            others = try await client.list(filter, limit: Self.mostJobs).jobs
        }
        // Lists leave out a long source, as that of a program with a long environment.
        for job in jobs.prefix(rows) where job.json["source"]?["type"] ?? "program" == "program" {
            lines[job.id] = await client.lastLine(of: job.id)
        }
    }
}
