import JobModel
import JobProtocol
import NIOCore
import Synchronization

@testable import JobCore
@testable import JobEngine
@testable import JobServer

/// How often something happened.
final class Count: Sendable {
    private let value = Mutex(0)

    func add() { value.withLock { $0 += 1 } }

    var now: Int { value.withLock(\.self) }
}

extension Outbox {
    /// The lines of the next piece, and the rest of the last one, without their ends; nil at the end.
    func nextLines() -> [String]? {
        var text = ""
        while text.isEmpty || text.last != "\n", let piece = next() {
            sent(piece.readableBytes)
            text += String(buffer: piece)
        }
        return text.isEmpty ? nil : text.split(separator: "\n").map(String.init)
    }

    /// A watch that is open already.
    func watch(_ number: Int) -> Watch {
        let watch = Watch(number: number, outbox: self, charge: .free) { _ in }
        watch.open([:])
        return watch
    }

    /// All lines that wait.
    func allLines() -> [String] {
        var lines: [String] = []
        while let more = nextLines() { lines += more }
        return lines
    }
}

extension Watch {
    func receive(_ event: JobEvent) { receive(.event(event)) }

    func receive(_ batch: ProgressBatch) { receive(.progress(batch)) }

    /// Opens the watch with an answer that shows these jobs, in these versions.
    func open(unfinished: Set<JobID>, versions: [JobID: Int64] = [:]) {
        var standings = versions.mapValues { JobStanding(owner: 0, state: .succeeded, version: $0) }
        for job in unfinished {
            standings[job] = JobStanding(owner: 0, state: .running, version: versions[job] ?? 0)
        }
        open(standings)
    }
}

extension BudgetCharge {
    /// A charge of a budget without a bound.
    static var free: BudgetCharge { BudgetCharge(work: 0, in: UserBudget(limit: .max)) }
}

extension JobEvent {
    /// A change to `state` of a job whose label says which change it is.
    static func state(
        _ job: JobID, _ state: JobState = .running, label: String = "", version: Int64 = 1
    ) -> JobEvent {
        var spec: JSON = ["source": ["type": "timer", "seconds": 1]]
        if !label.isEmpty { spec = ["source": ["type": "timer", "seconds": 1], "label": .string(label)] }
        guard let spec = try? JobSpecReader.spec(spec, limits: JobLimits()) else {
            preconditionFailure("A test's spec is a good one.")
        }
        var row = JobRow(
            id: job, owner: 0, groups: nil, parent: nil, terms: NewJob.Terms(spec, host: nil).lasting,
            specSize: spec.size, createdAt: Timestamp(milliseconds: 0), state: state)
        row.version = version
        return JobEvent(
            JobChange(row: row, document: .spec(spec.json.utf8), template: nil), inlineResult: JobLimits().inlineResult)
    }
}

extension ProgressBatch {
    /// So many bytes of a job.
    static func progress(_ job: JobID, _ completed: Int64, coalesced: Int = 0) -> ProgressBatch {
        progress([job], completed, coalesced: coalesced)
    }

    /// So many bytes of each of some jobs.
    static func progress(_ jobs: some Sequence<JobID>, _ completed: Int64, coalesced: Int = 0) -> ProgressBatch {
        ProgressBatch(
            jobs.map { job in
                ProgressRow(
                    job: job, link: 0,
                    news: .progress(Progress(completed: completed, total: nil), links: 2, coalesced: coalesced))
            })
    }

    /// So many bytes of the output of each of some jobs' programs.
    static func output(_ jobs: JobID..., size: Int64) -> ProgressBatch {
        ProgressBatch(jobs.map { ProgressRow(job: $0, link: 0, news: .output(attempt: 1, size: size)) })
    }
}

/// A notification as a client reads it.
struct Notice: Equatable {
    let method: String
    let watch: String
    let job: Int
    /// 0 where it tells of output.
    let seq: Int
    /// The state or the bytes.
    let value: String
    let coalesced: Int?
    let label: String?

    init?(_ line: String) {
        guard case .notification(let method, let params)? = try? ServerMessage(Array(line.utf8)),
            let watch = params["watch"]?.string, let job = params["job"]?.int,
            let seq = params["seq"]?.int ?? (method == JobNotification.Method.output.rawValue ? 0 : nil)
        else { return nil }
        self.method = method
        self.watch = watch
        self.job = job
        self.seq = seq
        value =
            params["state"]?.string ?? (params["progress"]?["completed"] ?? params["size"])?.description ?? ""
        coalesced = params["coalesced"]?.int
        label = params["snapshot"]?["label"]?.string
    }
}
