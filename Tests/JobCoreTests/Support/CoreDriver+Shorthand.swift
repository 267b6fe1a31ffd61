import JobModel
import Testing

@testable import JobCore

extension JobSpec {
    /// The spec that `text` writes as JSON.
    static func parsing(_ text: String) throws -> JobSpec {
        try JobSpecReader.spec(JSON(parsing: text), limits: JobLimits())
    }
}

extension CoreDriver {
    // MARK: - Asking

    /// A job as the server hands it in.
    func new(_ text: String, subscription: SubscriptionID? = nil) throws -> NewJob {
        let admitted = try core.admission.spec(JSON(parsing: text), from: .one)
        return NewJob(admitted, subscription: subscription)
    }

    /// Submits jobs; gives the request.
    func requestSubmit(_ texts: String..., as caller: Caller = .one, subscription: SubscriptionID? = nil) throws
        -> RequestID
    {
        ask(.submit(try texts.map { try new($0, subscription: subscription) }), as: caller)
    }

    /// Submits a job and gives its id.
    @discardableResult
    func submit(_ text: String, as caller: Caller = .one, subscription: SubscriptionID? = nil) throws -> JobID {
        let id = try requestSubmit(text, as: caller, subscription: subscription)
        return try #require(try submitted(id).first?.get().job)
    }

    func submitted(_ id: RequestID) throws -> [Result<SubmittedJob, CoreError>] {
        guard case .submitted(let results) = try #require(answer(to: id)) else {
            Issue.record("No submission: \(String(describing: answer(to: id)))")
            return []
        }
        return results
    }

    /// The job as a caller is shown it.
    func show(_ id: JobID, as caller: Caller = .root) -> Job? {
        guard case .job(let snapshot) = answer(to: ask(.job(id), as: caller)) else { return nil }
        return snapshot.job
    }

    func state(_ id: JobID) -> JobState? { show(id)?.state }

    /// The error that a request was answered with.
    func error(_ id: RequestID) -> CoreError? {
        guard case .failed(let error) = answer(to: id) else { return nil }
        return error
    }

    func code(_ id: RequestID) -> CoreError.Code? { error(id)?.code }

    /// What a job is stored as.
    func stored(_ id: JobID) -> Job? { store[id] }

    // MARK: - Sources

    /// The sources at work, in the order of their start.
    var running: [SourceRun] { open.values.sorted { $0.run < $1.run } }

    /// The jobs whose sources are at work, in the order of their start.
    var atWork: [JobID] { running.map(\.job) }

    func run(of job: JobID) throws -> SourceRun { try #require(running.last { $0.job == job }, "job \(job) runs") }

    /// Ends the source of a job.
    func end(_ job: JobID, _ outcome: Outcome = .success("done"), report: ProgressReport? = nil) throws {
        let run = try run(of: job)
        finish(run.run)
        feed(.ended(run.run, outcome, report, random: random))
    }

    /// Ends what is at work, and what comes of it, for so long as there is something; `outcome` says with what.
    func endAll(most: Int = 10_000, _ outcome: (SourceRun) -> Outcome = { _ in .success("done") }) {
        for _ in 0..<most {
            guard let run = running.first, !hasCrashed else { return }
            finish(run.run)
            feed(.ended(run.run, outcome(run), nil, random: random))
        }
    }

    func report(_ job: JobID, _ completed: Int64, of total: Int64? = nil, updates: Int) throws {
        let run = try run(of: job)
        feed(
            .progress([
                ProgressReport(run: run.run, progress: Progress(completed: completed, total: total), updates: updates)
            ]))
    }

    // MARK: - What was told

    /// The states that a subscription was told of a job.
    func states(of job: JobID, to subscription: SubscriptionID) -> [JobState] {
        told.filter { $0.subscribers.contains(subscription) && $0.change.job == job }.map(\.change.state)
    }

    /// Asserts that nothing is kept that belongs to no job in memory, and that the counters are what the store has.
    func expectQuiet(_ location: SourceLocation = #_sourceLocation) {
        let inspection = core.inspection
        #expect(inspection.slots == 0, "slots", sourceLocation: location)
        #expect(inspection.hostConnections == 0, "hosts", sourceLocation: location)
        #expect(inspection.openLists == 0, "lists", sourceLocation: location)
        #expect(inspection.joins == 0, "joins", sourceLocation: location)
        #expect(inspection.residentJobs == 0, "jobs", sourceLocation: location)
        #expect(inspection.runs == 0 && open.isEmpty, "runs", sourceLocation: location)
        #expect(inspection.submitting == 0, "submitting", sourceLocation: location)
        #expect(inspection.windowEntries == 0, "windows", sourceLocation: location)
        #expect(inspection.pendingReads == 0 && inspection.departures == 0, "reads", sourceLocation: location)
        #expect(inspection.waits == 0, "waits", sourceLocation: location)
        #expect(store.marks.isEmpty, "marks", sourceLocation: location)
        expectCounted(location)
    }

    /// Asserts that the counters are what a count of the stored jobs gives.
    func expectCounted(_ location: SourceLocation = #_sourceLocation) {
        var states: [JobState: Int] = [:]
        for job in store.all { states[core.table[job.id]?.job.state ?? job.state, default: 0] += 1 }
        #expect(core.counters.totals() == states, sourceLocation: location)
        var bytes: [UInt32: Int64] = [1: 0, 2: 0]
        var finished: Int64 = 0
        for count in store.recovery.counts {
            bytes[count.owner, default: 0] += count.bytes
            if count.state.isTerminal { finished += count.bytes }
        }
        for (owner, bytes) in bytes { #expect(core.counters.bytes(of: owner) == bytes, sourceLocation: location) }
        #expect(core.counters.finishedBytes == finished, sourceLocation: location)
    }
}

extension SourceParameters {
    /// The host that it asks, in these tests.
    var host: String {
        guard case .url(let request) = self else { return "" }
        return String(request.url.dropFirst(7).prefix { $0 != "/" })
    }
}

extension Result where Success == JSON, Failure == JobError {
    /// A failure that a retry may mend.
    static var passing: Outcome { .failure(JobError(.network, "The connection broke.", retryable: true)) }
    /// A failure that stays.
    static var lasting: Outcome { .failure(JobError(.checksum, "Wrong.")) }

    /// The kind of a failure.
    var kind: JobError.Kind? {
        guard case .failure(let error) = self else { return nil }
        return error.kind
    }
}
