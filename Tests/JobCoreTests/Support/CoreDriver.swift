import InMemoryStore
import JobModel
import JobCore

/// A test engine: runs the core in rounds on an in-memory store and records its effects.
final class CoreDriver {
    let store = InMemoryStore()
    private(set) var core: Core
    private(set) var now = CoreMoment(wall: Timestamp(milliseconds: 1_700_000_000_000), steady: 1_000_000)
    private var life: Int64 = 1
    private var lastID: Int64 = 0
    private(set) var orders: [RunID: RunOrder] = [:]
    private(set) var live: [RunID: LiveRun] = [:]
    private(set) var cancelled: Set<RunID> = []
    private(set) var answers: [RequestID: CoreAnswer] = [:]
    private(set) var changes: [(subscribers: [SubscriptionID], row: JobRow)] = []
    private(set) var effects: [CoreEffect] = []
    /// Whether steps that make children or wait run at once; other steps always wait for the test.
    var expandsSteps = true

    init(_ settings: CoreSettings = CoreSettings()) throws {
        core = Core(settings: settings, life: 1, at: now)
        try reset(.clean)
    }

    // MARK: - Rounds

    /// Runs a round with these inputs and returns how it ended.
    @discardableResult
    func round(_ inputs: [CoreInput]) -> RoundEnd {
        let end = store.round { (transaction) throws(StoreError) in
            for input in inputs {
                try core.handle(input, at: now, in: transaction)
            }
            try core.close(at: now, in: transaction)
        }
        switch end {
        case .committed: carryOut(core.committed())
        case .undone, .unknown: core.undone()
        }
        return end
    }

    /// Runs a round with these inputs, and the follow-up that the core requests.
    func send(_ inputs: CoreInput...) {
        round(inputs)
        settle()
    }

    func settle() {
        while core.wantsTick { round([.tick]) }
    }

    func reset(_ start: Core.Start) throws {
        let end = store.round { (transaction) throws(StoreError) in
            try core.reset(from: transaction, runs: Array(live.values), start: start, at: now)
            try core.close(at: now, in: transaction)
        }
        guard case .committed = end else { throw Failure(message: "The reset was not committed.") }
        carryOut(core.committed())
        settle()
    }

    /// Starts a new daemon after this one was killed or stopped cleanly.
    func restart(_ start: Core.Start) throws {
        store.end(life: life, wasStopped: start == .clean)
        life += 1
        store.begin(life: life)
        store.life = life
        core = Core(settings: core.settings, life: life, at: now)
        orders = [:]
        live = [:]
        cancelled = []
        try reset(start)
    }

    func advance(by seconds: Double) {
        now.steady += Int64(seconds * 1000)
        now.wall = now.wall.adding(seconds: seconds)
        send(.tick)
    }

    // MARK: - Effects

    private func carryOut(_ effects: [CoreEffect]) {
        self.effects += effects
        var next: [CoreInput] = []
        for effect in effects {
            switch effect {
            case .answer(let id, let answer): answers[id] = answer
            case .notify(let subscribers, let change): changes.append((subscribers, change.row))
            case .start(let order): next += start(order)
            case .proceed(let run, let host, let connections):
                live[run]?.host = host
                live[run]?.permits = connections
            case .yield(let run): drop(run)
            case .makeChildren(let run, let from): next += makeChildren(run, from: from)
            case .cancel(let run, _): cancelled.insert(run)
            default: break
            }
        }
        if !next.isEmpty { round(next) }
    }

    private func start(_ order: RunOrder) -> [CoreInput] {
        orders[order.run] = order
        live[order.run] = order.live
        guard expandsSteps else { return [] }
        if case .gather(let list) = order.kind {
            let value = list.decided.map { "\($0)" } ?? "[\(list.ended),\(list.failed)]"
            return [end(order.run, RunEnd(.success(.inline(Array(value.utf8)))))]
        }
        if case .adopt(let value, let body) = order.kind {
            let value = value.blob.map { .file($0.renamed) } ?? value
            return [end(order.run, RunEnd(.success(value), body: body?.renamed))]
        }
        guard let source = step(of: order) else { return [] }
        switch source["type"]?.string {
        case "timer":
            drop(order.run)
            return [.run(order.run, .timer(source["seconds"]?.double ?? 0))]
        case "job":
            drop(order.run)
            return [.run(order.run, .job(source["job"]?.int.map(JobID.init) ?? order.job.id))]
        case "list":
            let mode = source["mode"]?.string.flatMap(ListMode.init(rawValue:)) ?? .settled
            return [
                .run(
                    order.run,
                    .list(
                        ListRow(
                            job: order.job.id, link: order.job.link, mode: mode,
                            concurrency: source["concurrency"]?.int,
                            total: source["jobs"]?.array?.count ?? 0, template: nil)))
            ]
        case "value": return [end(order.run, RunEnd(.success(.inline(source["value"]?.utf8 ?? []))))]
        case "error": return [end(order.run, RunEnd(.failure(JobError(.invalid, "It was written to fail."))))]
        default: return []
        }
    }

    private func makeChildren(_ run: RunID, from: Int) -> [CoreInput] {
        guard let order = orders[run], let jobs = step(of: order)?["jobs"]?.array else { return [] }
        let end = min(jobs.count, from + 2)
        let children = jobs[from..<end].enumerated().map { offset, job in
            NewChildRow(index: from + offset, terms: terms(job), document: .spec(job.utf8))
        }
        return [.run(run, .children(children, isLast: end == jobs.count))]
    }

    private func terms(_ json: JSON) -> Result<NewJob.Terms, JobError> {
        do {
            var reader = JobSpecReader(limits: JobLimits())
            let spec = try reader.child(json, at: JSONPointer(), depth: 1)
            return .success(NewJob.Terms(spec, host: nil))
        } catch {
            return .failure(JobError(.invalid, error.reason))
        }
    }

    /// Returns the source of a run's step.
    private func step(of order: RunOrder) -> JSON? {
        guard case .spec(let text)? = order.document, let spec = try? JSON(parsing: text) else { return nil }
        if order.job.link == 0 { return spec["source"] }
        let link = spec["then"]?.array?[order.job.link - 1]
        let isFailure = order.job.carried?.error != nil
        let names = isFailure ? ["fail", "both", "finally"] : ["then", "both", "finally"]
        return names.lazy.compactMap { link?[$0]?["source"] }.first
    }

    private func drop(_ run: RunID) {
        orders[run] = nil
        live[run] = nil
        cancelled.remove(run)
    }

    private func end(_ run: RunID, _ end: RunEnd) -> CoreInput {
        drop(run)
        return .run(run, .ended(end))
    }

    // MARK: - Actions of tests

    func id() -> Int64 {
        lastID += 1
        return lastID
    }

    /// Sends a request and returns its answer.
    @discardableResult
    func ask(_ request: CoreRequest, as uid: UInt32 = 1, isAdmin: Bool = false) -> CoreAnswer? {
        let id = id()
        send(.request(id, request, Caller(uid: uid, isAdmin: isAdmin)))
        return answers[id]
    }

    /// Submits a job and returns its id.
    func submit(_ spec: JSON, as uid: UInt32 = 1, host: String? = nil, watch: SubscriptionID? = nil) throws -> JobID {
        let job = try new(spec, host: host, watch: watch)
        guard case .submitted(let jobs)? = ask(.submit([job]), as: uid) else {
            throw Failure(message: "The submission got another answer.")
        }
        return try jobs[0].get().job
    }

    func new(_ json: JSON, host: String? = nil, watch: SubscriptionID? = nil) throws -> NewJob {
        var reader = JobSpecReader(limits: JobLimits())
        let spec = try reader.spec(json)
        let text = spec.text ?? json.utf8
        return NewJob(
            terms: NewJob.Terms(spec, host: host), document: .spec(text),
            digest: UInt64(bitPattern: Int64(json.description.count)), jobs: reader.jobs,
            uploads: reader.uploads, subscription: watch)
    }

    func row(_ job: JobID) throws -> JobRow {
        var found: JobRow?
        _ = store.round { (transaction) throws(StoreError) in found = try transaction.job(job) }
        guard let found else { throw Failure(message: "There is no job \(job).") }
        return found
    }

    func exists(_ job: JobID) -> Bool { (try? row(job)) != nil }

    /// Returns the live run of a job.
    func run(of job: JobID) throws -> RunID {
        guard let run = live.values.first(where: { $0.job == job })?.run else {
            throw Failure(message: "No run is at work for job \(job).")
        }
        return run
    }

    func succeed(_ job: JobID, _ value: String = "1", output: Int64? = nil) throws {
        try end(job, .success(.inline(Array(value.utf8))), output)
    }

    func succeed(_ job: JobID, _ end: RunEnd) throws { send(self.end(try run(of: job), end)) }

    func fail(_ job: JobID, _ error: JobError = JobError(.network, "It broke."), output: Int64? = nil) throws {
        try end(job, .failure(error), output)
    }

    /// Ends the run of a job, whose program has written `output` bytes.
    private func end(_ job: JobID, _ outcome: Carried, _ output: Int64?) throws {
        let run = try run(of: job)
        send(end(run, RunEnd(outcome, output: output.map { run.output(size: $0) })))
    }

    /// The files that were to be unlinked.
    var unlinked: [BlobReference] {
        effects.flatMap { effect in if case .unlink(let blobs) = effect { blobs } else { [BlobReference]() } }
    }

    struct Failure: Error {
        let message: String
    }
}

extension JSON {
    /// The object with these members, too.
    func with(_ more: [String: JSON]) -> JSON {
        var members = object ?? [:]
        for (name, value) in more { members[name] = value }
        return .object(members)
    }
}

extension BlobReference {
    /// The second name that a test gives a file.
    var renamed: BlobReference { BlobReference(life: life, number: -number, size: size) }
}
