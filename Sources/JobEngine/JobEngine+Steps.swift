import JobStore
import Logging
import DataSources
import DeferredKit
import JobModel

/// Running the steps of a job's chain.
extension JobEngine {
    private enum Prepared {
        case outcome(Outcome)
        case source(SourceParameters)
    }

    /// Fills in the expressions of the present step.
    private func prepare(_ job: Job) -> Prepared {
        guard let step = job.step else {
            return .outcome(
                .failure(JobError(.internal, "Link \(job.link) has no step; this is a defect of the daemon.")))
        }
        do {
            let expansion = TemplateExpansion(job.expressionValues)
            switch step.action {
            case .return(let value): return .outcome(.success(try expansion.value(value)))
            case .throw(let written):
                let error = try expansion.value(written)
                let kind = JobError.Kind(rawValue: error["kind"]?.string ?? JobError.Kind.invalid.rawValue)
                guard kind.isWellFormed else {
                    return .outcome(
                        .failure(
                            JobError(.template, "\"\(kind.rawValue)\" is no error kind; use words with hyphens.")
                        ))
                }
                return .outcome(.failure(JobError(kind, error["message"]?.asText ?? "")))
            case .source(let source):
                let expanded = job.link == 0 ? source : try expansion.source(source)
                return .source(try admission.parameters(expanded, owner: job.owner))
            }
        } catch {
            return .outcome(.failure(error))
        }
    }

    /// The host that a job will ask when it goes on, as far as that is known.
    func nextHost(of entry: ActiveJob) -> String? {
        guard case .source(let parameters) = prepare(entry.job) else { return nil }
        return parameters.host
    }

    /// Runs the present step, or lets the job wait where that needs a place which is not free.
    func runStep(_ entry: ActiveJob) {
        guard phase == .serving else { return }
        entry.progress.reset()
        switch prepare(entry.job) {
        case .outcome(let outcome): stepEnded(entry, outcome)
        case .source(.list(let list)): startList(entry, list)
        case .source(.each(let each)): startEach(entry, each)
        case .source(.timer(let seconds)): startTimer(entry, seconds: seconds)
        case .source(let parameters):
            // What a stopped job still has to run does not wait.
            if entry.job.stop == nil {
                let host = parameters.host
                if !entry.hasPlace { return park(entry, host: host) }
                if let host, entry.host != host {
                    guard hosts.isOpen(host) else { return park(entry, host: host) }
                    leaveHost(entry)
                    hosts.enter(host)
                    entry.host = host
                }
            }
            run(parameters, entry)
        }
    }

    private func run(_ parameters: SourceParameters, _ entry: ActiveJob) {
        entry.run += 1
        let run = entry.run
        guard case .download = parameters, entry.job.attempt > 1 || entry.job.createdAt < startedAt else {
            return start(parameters, entry, note: nil)
        }
        // Owned by the engine; it ends with the read.
        Task {
            let note = try? await store.note(of: entry.job.id, link: entry.job.link)
            guard entry.run == run, active[entry.job.id] === entry, phase == .serving else { return }
            start(parameters, entry, note: note)
        }
    }

    /// Lets a job wait for a time, which ends so long after the link first began. It has no slot of its queue meanwhile, as
    /// nothing of it runs.
    private func startTimer(_ entry: ActiveJob, seconds: Double) {
        if entry.job.stop == nil, !entry.countsAsTimer {
            guard hosts.isOpen(HostBoard.timers) else { return park(entry, host: HostBoard.timers) }
            hosts.enter(HostBoard.timers)
            entry.countsAsTimer = true
        }
        entry.run += 1
        leave(entry)
        let now = clock.now()
        let end = (entry.job.linkStartedAt ?? now).adding(seconds: seconds)
        // Of a source nothing is stored before its end; the next daemon has to know when this one began.
        if entry.job.link == 0 { save(entry, then: .none) }
        start(.timer(max(0, min(seconds, end.seconds(since: now)))), entry, note: nil)
    }

    private func start(_ parameters: SourceParameters, _ entry: ActiveJob, note: JSON?) {
        let job = entry.job
        let run = entry.run
        let source = library.source(parameters, context(of: job, note: note))
        var work: Deferred<JSON, any Error>
        if entry.hasPlace, let queue = workQueues[job.spec.queue] {
            work = source.start(on: queue)
        } else {
            work = source.start()
        }
        // Transfers keep to their timeout themselves, so that what they have can be gone on with.
        if let seconds = job.step?.timeout ?? job.spec.timeout, parameters.host == nil {
            work = work.timeout(.seconds(seconds))
        }
        entry.work = work
        let cell = entry.progress
        work.onProgress { cell.report($0) }
        let id = job.id
        work.upon(on: executor) { outcome in
            self.assumeIsolated { $0.sourceEnded(id, run, outcome) }
        }
    }

    private func sourceEnded(_ id: JobID, _ run: Int, _ outcome: Result<JSON, any Error>) {
        guard phase == .serving, let entry = active[id], entry.run == run else { return }
        entry.work = nil
        if let bytes = entry.progress.latest?.completed {
            let received = totals[entry.job.owner]?.bytesReceived ?? 0
            totals[entry.job.owner, default: EngineTotals()].bytesReceived = received.saturatingAdding(bytes)
        }
        stepEnded(entry, outcome.mapError { JobError($0, timeout: entry.job.step?.timeout ?? entry.job.spec.timeout) })
    }

    /// Goes on from the outcome of the present step.
    func stepEnded(_ entry: ActiveJob, _ outcome: Outcome) {
        if case .failure(let error) = outcome { holdBack(entry, error) }
        closeList(entry)
        let action: Job.Action
        do {
            // Chance is a system call, and only a retry needs it.
            let random = if case .failure = outcome { clock.random() } else { 0.0 }
            action = try handle(entry, .finished(outcome, random: random))
        } catch {
            logger.error("A step ended of a job that does not run.", metadata: ["job": "\(entry.job.id)"])
            return
        }
        if case .run = action { leaveHost(entry) } else { leave(entry) }
        save(entry, then: action)
    }

    /// Leaves a host alone that asked for it, for every job.
    private func holdBack(_ entry: ActiveJob, _ error: JobError) {
        guard let pause = error.retryAfter, pause > 0, let host = entry.host, let step = entry.job.step else { return }
        hosts.hold(host)
        alarms?.set(.host(host), in: min(pause, entry.job.spec.retryPolicy(of: step).maxDelay))
    }

    private func context(of job: Job, note: JSON?) -> SourceContext {
        let (id, link, store) = (job.id, job.link, store)
        return SourceContext(
            job: id, link: link, attempt: job.attempt, owner: job.owner, bodyPath: bodyPath(of: id, link: link),
            timeout: job.step?.timeout ?? job.spec.timeout, note: note,
            saveNote: { note in
                let promise = Promise<Void, any Error>()
                store.save(note: note, of: id, link: link) { promise.resolve($0.mapError { $0 as any Error }) }
                return promise.deferred
            },
            lastDownload: { path in
                Deferred { try await store.download(to: path) }
            },
            rememberDownload: { path, download in
                let promise = Promise<Void, any Error>()
                store.save(download: download, to: path) { promise.resolve($0.mapError { $0 as any Error }) }
                return promise.deferred
            })
    }

    /// Whether a job waits to go on with a download, of which a part can be there.
    func isPausedDownload(_ entry: ActiveJob) -> Bool {
        entry.work == nil && entry.join == nil && (entry.job.attempt > 0 || entry.job.createdAt < startedAt)
            && entry.job.step?.type == .download
    }

    /// Removes what a download has kept of which no part is wanted any more, then goes on.
    func discardPart(of job: Job, then next: @escaping @Sendable (isolated JobEngine) -> Void) {
        // Owned by the engine; it ends with the file's removal.
        Task {
            if let note = try? await store.note(of: job.id, link: job.link) {
                await library.discard(note, owner: job.owner)
            }
            next(self)
        }
    }

    /// Where the large body of a link's result lies.
    nonisolated func bodyPath(of job: JobID, link: Int) -> String {
        BodyFolder(path: settings.bodies).file(of: job, link: link)
    }
}

extension Job {
    /// What expressions in the present step can name.
    var expressionValues: [TemplateText.Name: JSON] {
        var about: JSONObject = JSONObject()
        about.append("id", JSON(Int(id)))
        about.append("attempt", JSON(attempt))
        about.append("label", spec.label.map(JSON.string) ?? .null)
        var values: [TemplateText.Name: JSON] = [.job: .object(about), .input: .null, .error: .null]
        switch carried {
        case .success(let value): values[.input] = value
        case .failure(let error): values[.error] = error.json
        case nil: break
        }
        return values
    }
}

extension SourceParameters {
    /// The host that it asks first.
    var host: String? {
        switch self {
        case .url(let request), .json(let request, _): SourceLibrary.host(of: request.url)
        case .download(let download): SourceLibrary.host(of: download.url)
        default: nil
        }
    }
}

extension JobError {
    /// What a source failed with, as clients see it.
    init(_ error: any Error, timeout: Double?) {
        switch error {
        case let error as JobError: self = error
        case is TimeoutError:
            self.init(
                .timeout,
                "The source took longer than its timeout of \(JSON(timeout ?? 0)) seconds; allow it more or try again.",
                retryable: true)
        case is CancellationError: self = Job.Stop.cancelled.error
        default: self.init(.internal, "The source failed in a way that was not foreseen: \(error).")
        }
    }
}

extension JSON {
    /// A scalar as text, a string without its quotes.
    var asText: String { string ?? description }
}
