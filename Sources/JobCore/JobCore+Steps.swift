import JobModel

/// Runs the steps of a job's chain.
extension JobCore {
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
            // What came in and what was written were accepted, whatever the limits are now.
            let expansion = TemplateExpansion(
                job.expressionValues, budget: settings.limits.composedValues,
                atLeast: max(settings.limits.documentValues, Int(clamping: job.carriedMemory)))
            switch step.action {
            case .return(let value): return .outcome(.success(try expansion.value(value)))
            case .throw(let written):
                let error = try expansion.value(written)
                let kind = JobError.Kind(rawValue: error["kind"]?.string ?? JobError.Kind.invalid.rawValue)
                guard kind.isWellFormed else {
                    return .outcome(
                        .failure(
                            JobError(.template, "\"\(kind.rawValue.echoed)\" is no error kind; use words with hyphens.")
                        ))
                }
                let message = error["message"].map { $0.string ?? $0.description } ?? ""
                return .outcome(.failure(JobError(kind, message)))
            case .source(let source):
                let expanded = job.link == 0 ? source : try expansion.source(source)
                // What a client wrote is as long as its line at most.
                let isWritten = job.link == 0 && job.parent == nil
                return .source(
                    try admission.parameters(expanded, written: source, owner: job.owner, isStored: isWritten))
            }
        } catch {
            return .outcome(.failure(error))
        }
    }

    /// The host that a job's next step sends requests to, as far as that is known, or the name of what else it waits
    /// for. A long step is not filled in for that: it waits for its host when it runs.
    func nextHost(of job: Job) -> String? {
        if let key = ConcurrencyKey(hostlessStepOf: job) { return key.name }
        var job = job
        guard !job.isLong else { return job.link == 0 ? admission.host(of: job.spec) : nil }
        // Its start counts an attempt, which its expressions can name.
        if job.state != .running { job.attempt += 1 }
        guard case .source(let parameters) = prepare(job) else { return nil }
        return admission.host(of: parameters)
    }

    /// Runs the present step, or lets the job wait where that needs a slot or a host which is not free.
    func runStep(_ entry: ActiveJob) {
        guard phase == .serving, !stopOverdue(entry) else { return }
        entry.step += 1
        entry.resetProgress()
        guard entry.job.isLong else { return carryOutStep(entry) }
        let step = entry.step
        inTurn(of: entry) { [unowned self] in
            guard table[entry.job.id] === entry, entry.step == step, phase == .serving else { return }
            guard !stopOverdue(entry) else { return }
            // Its host may have asked to be left alone meanwhile.
            if let permit = entry.permit, scheduler.isBackedOff(permit.key) { releasePermit(entry) }
            carryOutStep(entry)
        }
    }

    /// Stops a job whose deadline passed.
    private func stopOverdue(_ entry: ActiveJob) -> Bool {
        guard entry.job.isOverdue(at: now.wall) else { return false }
        // A `finally` link runs all the same, once that is stored.
        entry.unsaved = .run
        stop(entry, .deadline, nil)
        return true
    }

    private func carryOutStep(_ entry: ActiveJob) {
        switch prepare(entry.job) {
        case .outcome(let outcome): stepEnded(entry, outcome)
        case .source(.value(let value)): stepEnded(entry, .success(value))
        case .source(.error(let kind, let message)): stepEnded(entry, .failure(JobError(kind, message)))
        case .source(.timer(let seconds)): startTimer(entry, seconds)
        case .source(.list(let list)): startList(entry, .list(list))
        case .source(.each(let each)): startList(entry, .each(each))
        case .source(let parameters): run(parameters, entry)
        }
    }

    private func run(_ parameters: SourceParameters, _ entry: ActiveJob) {
        let job = entry.job
        let key = ConcurrencyKey(host: admission.host(of: parameters), isAgain: job.lastFailure?.http != nil)
        guard let slot = entry.slot, scheduler.mayKeep(slot) else { return park(entry, for: key) }
        if key.counted != entry.permit?.key ?? .none {
            releasePermit(entry)
            if key != .none {
                guard let permit = scheduler.acquire(key, for: job.owner) else { return park(entry, for: key) }
                entry.permit = permit
            }
        }
        if case .download(let download) = parameters, download.segments > 1, let permit = entry.permit {
            entry.sparePermits = scheduler.acquireSpare(download.segments - 1, beside: permit)
        }
        let run = nextRun()
        entry.run = run
        entry.runEndsLater = parameters.type.endsLater
        runs[run] = job.id
        emit(.mark(job.id, isWorking: true))
        emit(
            .start(
                SourceRun(
                    run: run, parameters: parameters, job: job.id, link: job.link, attempt: job.attempt,
                    owner: job.owner, groups: job.groups, timeout: job.stepTimeout,
                    mayResume: job.attempt > 1 || job.createdAt < startedAt.wall,
                    mayRetry: job.step.map { job.attempt <= job.spec.retryPolicy(of: $0).max } ?? false,
                    connections: 1 + entry.sparePermits.count,
                    roomForBody: max(0, settings.storedPerUser.saturatingSubtracting(keptBytes(of: job.owner))))))
    }

    /// A timer waits without a slot. It counts from when the link began, also across restarts.
    private func startTimer(_ entry: ActiveJob, _ seconds: Double) {
        let owner = entry.job.owner
        if entry.permit?.key != .timers {
            releasePermit(entry)
            // Each timer takes memory, so their number is bounded. One that ran before a restart goes on.
            if entry.job.linkStartedAt ?? now.wall >= startedAt.wall {
                guard let permit = scheduler.acquire(.timers, for: owner) else { return park(entry, for: .timers) }
                entry.permit = permit
            } else {
                entry.permit = scheduler.acquireAnyway(.timers, for: owner)
            }
        }
        releaseSlot(entry)
        let elapsed = entry.job.linkStartedAt.map { now.wall.seconds(since: $0) } ?? 0
        // A clock that was set back must not make the timer longer.
        let left = max(0, min(seconds, seconds - elapsed))
        let timeout = entry.job.stepTimeout
        entry.isTimerTooLong = timeout.map { $0 < left } ?? false
        setTimer(.timer(entry.job.id), in: min(left, timeout ?? left))
        // Also one that ended while no daemon was there: very many may have.
        if entry.isStored { return restIfWaiting(entry) }
        guard left > 0 else { return }
        // Stored so that the next daemon knows when it began; the timer does not wait for that.
        save(entry, then: .none)
    }

    /// The source `timer` of a job ended, or its timeout passed.
    func timerFired(_ id: JobID) {
        if let entry = table[id] { timerFired(entry) } else { resting.fell(due: id) }
    }

    func timerFired(_ entry: ActiveJob) {
        guard entry.job.state == .running else { return }
        if entry.isTimerTooLong {
            let timeout = entry.job.stepTimeout ?? 0
            return stepEnded(
                entry,
                .failure(
                    JobError(
                        .timeout,
                        "The timer took longer than its timeout of \(JSON(timeout)) seconds; allow it more.",
                        retryable: true)))
        }
        stepEnded(entry, .success(.null))
    }

    func sourceEnded(
        _ run: RunID, _ outcome: Outcome, size: OutcomeSize?, _ report: ProgressReport?, random: Double
    ) {
        if let slot = abandoned.removeValue(forKey: run) { return scheduler.release(slot) }
        guard let id = runs.removeValue(forKey: run), let entry = table[id], entry.run == run else { return }
        guard phase == .serving else { return }
        releaseSparePermits(entry)
        entry.run = nil
        emit(.mark(id, isWorking: false))
        if let report { recordProgress(report, of: entry) }
        // A body in a file; nobody but the source writes such a result.
        if case .success(let value) = outcome, entry.job.step?.type == .url, value["spilled"] == true,
            let size = value["size"]?.int
        {
            entry.job.bodies[entry.job.link] = max(0, size)
        }
        stepEnded(entry, outcome, size: size, random: random)
    }

    /// Breaks off the source that is at work.
    func cancelRun(_ entry: ActiveJob) {
        timers.clear(.timer(entry.job.id))
        guard let run = entry.run else { return }
        releaseSparePermits(entry)
        entry.run = nil
        runs[run] = nil
        emit(.cancel(run, awaitsEnd: false))
        emit(.mark(entry.job.id, isWorking: false))
    }

    /// Breaks off the source of a removed job. One that takes its time to end keeps its slot until it has.
    func abandonRun(_ entry: ActiveJob) {
        guard let run = entry.run, let slot = entry.slot, entry.runEndsLater else { return cancelRun(entry) }
        entry.run = nil
        entry.slot = nil
        runs[run] = nil
        abandoned[run] = slot
        // It may have been told with its job's stop.
        if !entry.job.isEnding { emit(.cancel(run, awaitsEnd: true)) }
        emit(.mark(entry.job.id, isWorking: false))
    }

    /// Goes on from the outcome of the present step; `size` is its `measuredSize`, where that is known.
    func stepEnded(_ entry: ActiveJob, _ outcome: Outcome, size: OutcomeSize? = nil, random: Double = 0.5) {
        entry.step += 1
        timers.clear(.timer(entry.job.id))
        closeList(entry)
        var (outcome, size) = (outcome, size ?? outcome.measuredSize)
        if let error = refusal(toKeep: outcome, size.text, of: entry) {
            outcome = .failure(error)
            size = outcome.measuredSize
        }
        if let error = outcome.failure { backOff(entry, error) }
        let action: Job.Action
        let link = entry.job.link
        let isFailedDownload = outcome.failure != nil && entry.job.step?.type == .download
        do {
            action = try transition(entry, .finished(outcome, size: size, random: random))
        } catch {
            return expect(false, "A step of job \(entry.job.id) ended, which is \(error.state.rawValue).")
        }
        if case .run = action {
            // The state machine is at the next link already.
            log(entry.job, .linkEnded(link, outcome.failure))
            releasePermit(entry)
        } else {
            releaseAll(entry)
        }
        if action == .wait { entry.job.host = nextHost(of: entry.job) }
        let isOver = [.succeeded, .cancelled].contains(entry.job.state)
        if isOver, entry.job.mayHaveLaterPart {
            // Nobody goes on with what any link had, a `finally` of a cancelled job among them.
            discardParts(of: entry.job, links: 0...Int.max)
        } else if isFailedDownload, entry.job.link > link || isOver {
            // Its failure was caught, so nobody goes on with what it had.
            discardParts(of: entry.job, links: link...link)
        }
        save(entry, then: action)
    }

    private func discardParts(of job: Job, links: ClosedRange<Int>) {
        emit(.discardParts(cleanUp {}, job: job.id, links: links, owner: job.owner))
    }

    /// Why a result is not kept, where its owner has too much stored for it.
    private func refusal(toKeep outcome: Outcome, _ size: Int64, of entry: ActiveJob) -> JobError? {
        guard case .success = outcome else { return nil }
        let used = keptBytes(of: entry.job.owner)
        guard used > 0, used.saturatingAdding(size - Job.resultFrame) > settings.storedPerUser else { return nil }
        return JobError(
            .tooLarge,
            "The result cannot be kept: your jobs take up \(used) of \(settings.storedPerUser) bytes; "
                + "remove some that are over, then retry the job.")
    }

    /// Backs off from a host that refused one of a run's connections.
    func refused(_ run: RunID, _ error: JobError) {
        guard let entry = runs[run].flatMap({ table[$0] }), entry.run == run else { return }
        backOff(entry, error)
    }

    /// Backs off from a host that asked for it, for all jobs: the one that was asked, or another to which that redirected.
    func backOff(_ entry: ActiveJob, _ error: JobError) {
        guard let pause = error.retryAfter, pause > 0, case .host(let asked) = entry.permit?.key else { return }
        let host = error.retryAfterHost ?? asked
        guard scheduler.backOff(host: host, for: entry.job.owner) else { return }
        // Of several answers the one with the latest time counts.
        timers.setLater(.host(host), at: now.monotonic(after: min(pause, settings.longestBackOff)))
    }
}

extension Result {
    /// The error, where it is one.
    var failure: Failure? { if case .failure(let error) = self { error } else { nil } }
}

extension Job {
    /// Bytes of a spec, and of what expressions may fill into it, past which its steps take longer than anything else that is
    /// done at once: a millisecond and more.
    private static let longSpec: Int64 = 4 << 10
    private static let longExpansion: Int64 = 64 << 10
    /// No expression is shorter: `{{input}}`.
    private static let shortestExpression: Int64 = 9

    /// Whether its present step may take long.
    fileprivate var isLong: Bool {
        let size = Int64(spec.size)
        return size > Self.longSpec
            || carriedSize.saturatingMultiplied(by: size / Self.shortestExpression) > Self.longExpansion
    }

    /// Seconds that an attempt of its present step may take.
    var stepTimeout: Double? { step?.timeout ?? spec.timeout }

    /// Whether its deadline passed, and it was not stopped for that yet.
    func isOverdue(at time: Timestamp) -> Bool { stop == nil && deadlineAt.map { $0 <= time } ?? false }

    /// What expressions in the present step can name.
    fileprivate var expressionValues: [TemplateText.Name: JSON] {
        var about = JSONObject()
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
