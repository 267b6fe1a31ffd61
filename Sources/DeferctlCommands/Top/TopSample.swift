import JobClient
import JobModel

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
    /// Whether these are all running jobs except children.
    var isComplete = false
    /// The last lines that the programs of these jobs have written.
    var lines: [Int64: String] = [:]

    var json: JSON { ["stats": stats, "queues": .array(queues), "jobs": .array(jobs.map(\.json))] }

    var uptime: Double? { stats["uptime"]?.double }
}

extension TopSample {
    init(from client: JobClient, rows: Int, withOthers: Bool = false) async throws(JobClientError) {
        var filter = JobClient.Filter()
        filter.states = ["running"]
        stats = try await client.stats()
        queues = try await client.queues()
        let page = try await client.list(filter, limit: withOthers ? Self.mostJobs : min(Self.mostJobs, max(1, rows)))
        jobs = page.jobs
        isComplete = page.next == nil
        if withOthers {
            filter.states = ["held", "scheduled", "queued", "failed", "cancelled"]
            others = try await client.list(filter, limit: Self.mostJobs).jobs
        }
        for job in jobs.prefix(rows) where job.json["source"]?["type"] == "program" {
            lines[job.id] = await client.lastLine(of: job.id)
        }
    }
}

struct TopRates: Sendable, Equatable {
    let submitted: Double
    let finished: Double
    let failed: Double
    let received: Double
}

/// The newest samples, and the rates between them.
struct TopHistory: Sendable {
    private static let span = 5

    private var samples: [TopSample] = []

    var newest: TopSample? { samples.last }

    /// The rates, if time has passed between the first sample and the last.
    var rates: TopRates? {
        guard let first = samples.first, let last = samples.last, let begin = first.uptime, let end = last.uptime,
            end - begin > 0.01
        else { return nil }
        func rate(_ group: String, _ names: String...) -> Double {
            names.reduce(0) { sum, name in
                let (before, now) = (first.stats[group]?[name]?.double ?? 0, last.stats[group]?[name]?.double ?? 0)
                return sum + max(0, now - before) / (end - begin)
            }
        }
        return TopRates(
            submitted: rate("totals", "submitted"), finished: rate("totals", "succeeded", "failed", "cancelled"),
            failed: rate("totals", "failed"), received: rate("bytes", "received"))
    }

    mutating func append(_ sample: TopSample) {
        // The daemon has restarted.
        if let uptime = sample.uptime, let last = newest?.uptime, uptime < last { samples = [] }
        samples = (samples + [sample]).suffix(Self.span)
    }
}
