import JobModel

/// The state machine of a job: which event leads to which state.
///
/// scheduled -> queued -> running -> succeeded or failed; running -> scheduled (retry); running -> queued (the next link has
/// no slot, the host is busy, or a restart lost the run); scheduled, queued or a running download -> held -> queued; any of
/// these -> cancelled, or failed (deadline); a finished one -> queued (manual retry).
extension JobRow {
    /// The seconds after which a running suspect counts as no suspect any more.
    private static let trial = 60.0

    /// Begins a run of the current link after the job got a slot.
    mutating func begin(_ run: RunID?, at now: CoreMoment) {
        state = .running
        waiting = .nothing
        self.run = run
        due = isSuspect ? now.steady(after: Self.trial) : nil
        notBefore = nil
        startedAt = startedAt ?? now.wall
        // An attempt interrupted by a daemon restart does not count, but started the link's time.
        linkStartedAt = linkStartedAt ?? now.wall
        attempt += 1
    }

    /// Forgets a run that was lost or given up, or that could not continue without a permit, as if it had not begun.
    mutating func unbegin(waitingFor host: String? = nil, as state: JobState = .queued) {
        self.state = state
        run = nil
        due = nil
        self.host = host ?? self.host
        attempt = max(0, attempt - 1)
    }

    /// Sets when an unfinished job without a run may start.
    mutating func start(_ start: JobSettings.Start, at now: CoreMoment) {
        (due, notBefore) = (nil, nil)
        switch start {
        case .now: break
        case .after(let seconds):
            due = now.steady(after: seconds)
            notBefore = now.wall.adding(seconds: seconds)
        case .at(let time): notBefore = time
        }
        if state == .held {
            due = nil
        } else {
            state = notBefore.map { $0 > now.wall } == true ? .scheduled : .queued
        }
        if state == .queued { (due, notBefore) = (nil, nil) }
    }

    /// Makes a job ready whose time has come or whose owner releases it, or holds it; either way, its time is over.
    mutating func leaveTime(as state: JobState) {
        self.state = state
        due = nil
        notBefore = nil
    }

    /// Lets a running job wait without a run and a slot, until a time at the latest.
    mutating func wait(for waiting: Waiting, until due: SteadyTime?) {
        run = nil
        self.waiting = waiting
        self.due = due
    }

    func isOverdue(at now: CoreMoment) -> Bool { deadline.map { $0 <= now.steady } ?? false }

    /// Ends the current link: the job goes on running with the next link, waits for a retry, or is over.
    mutating func finished(_ outcome: Carried, at now: CoreMoment) {
        run = nil
        waiting = .nothing
        awaits = nil
        due = nil
        // A stopped run ends with the stop error, whatever it still produced.
        var outcome = isEnding ? .failure(stopError) : outcome
        if case .failure(var error) = outcome {
            error.link = link
            error.attempts = max(1, attempt)
            if error.kind == .program, step?.isRepeatable != true { error.isRetryable = false }
            outcome = .failure(error)
            if let pause = pause(after: error, at: now) {
                state = .scheduled
                lastFailure = error
                due = now.steady(after: pause)
                notBefore = now.wall.adding(seconds: pause)
                return
            }
        }
        record(outcome, at: now)
        advance(at: now)
    }

    /// The longest pause, in seconds, before a postponed start is tried again.
    private static let longestPostponement = 60.0

    /// Returns the seconds before the next attempt, if there is one.
    private mutating func pause(after error: JobError, at now: CoreMoment) -> Double? {
        if let pause = error.postponed {
            attempt = max(0, attempt - 1)
            // The longer it has waited, the longer the pause, because very many jobs may wait for the same thing.
            let waited = linkStartedAt.map { now.wall.seconds(since: $0) } ?? 0
            return max(pause, min(waited / 10, Self.longestPostponement))
        }
        guard error.isRetryable, let policy = step?.retry, attempt <= policy.max else { return nil }
        let pause = policy.delay(afterAttempt: attempt, random: now.random)
        return max(pause, min(error.retryAfter ?? 0, policy.maxDelay))
    }

    private mutating func record(_ outcome: Carried, at now: CoreMoment) {
        lastFailure = nil
        crashes = 0
        outcomes.append(
            LinkOutcome(
                link: link, error: outcome.error, startedAt: linkStartedAt ?? now.wall, finishedAt: now.wall,
                attempts: max(1, attempt), url: url))
        if isAtFinally { return }
        // A retry does not resume at a failure that a later link handled.
        failedLink = outcome.error == nil ? nil : FailedLink(link: link, incoming: carried)
        carried = outcome
    }

    /// Moves to the next link that applies, or finishes.
    private mutating func advance(at now: CoreMoment) {
        if let next = nextLink(from: link + 1) { go(to: next) } else { finish(at: now) }
    }

    private mutating func go(to next: Int) {
        link = next
        crashes = 0
        attempt = 0
        linkStartedAt = nil
        host = nil
        url = nil
    }

    /// The first link that applies, from link number `first` on.
    private func nextLink(from first: Int) -> Int? {
        guard carried != nil, first <= plan.links.count else { return nil }
        return (first...plan.links.count).first { number in
            (stop == nil || plan.isFinally(number)) && plan.step(number, for: carried) != nil
        }
    }

    private mutating func finish(at now: CoreMoment) {
        finishedAt = now.wall
        due = nil
        notBefore = nil
        deadline = nil
        state = outcomeSoFar
    }

    /// Stops an unfinished job. It goes on running until its run has ended (``isEnding``), or with a `finally` link; or it is
    /// queued for a `finally` link, or over.
    mutating func stop(_ reason: Stop, at now: CoreMoment) {
        guard stop == nil else { return }
        // The deadline has served its purpose; children of a `finally` link do not inherit it.
        deadline = nil
        // The run of a held download is ending.
        if run != nil { state = .running }
        stop = reason
        // A retry resumes at the failure before a `finally` link, not within that link.
        if !isAtFinally || failedLink == nil { failedLink = FailedLink(link: link, incoming: carried) }
        let error = stopError
        if state == .running, isAtFinally { return carried = .failure(error) }
        lastFailure = nil
        if run != nil { return }
        // A link that has begun ends here, unless it is a `finally` link that waits for its retry: that goes on.
        let endsLink = linkStartedAt != nil && !isAtFinally
        if endsLink { record(.failure(error), at: now) }
        carried = .failure(error)
        waiting = .nothing
        awaits = nil
        due = nil
        notBefore = nil
        // A link that never began, perhaps a `finally` link, is not skipped.
        guard let next = nextLink(from: endsLink ? link + 1 : link) else { return finish(at: now) }
        if next != link { go(to: next) }
        state = .queued
    }

    /// Whether its source was told to stop, so that the job waits for its end.
    var isEnding: Bool { state == .running && stop != nil && !isAtFinally }

    /// Whether it has a run that was told to stop.
    var hasStoppingRun: Bool { run != nil && (isEnding || state == .held) }

    private var stopError: JobError {
        var error = (stop ?? .cancelled).error
        error.link = link
        error.attempts = attempt
        return error
    }

    /// Handles the loss of a run that died with its daemon.
    mutating func restart(at now: CoreMoment) {
        (waiting, awaits) = (.nothing, nil)
        guard isEnding else {
            unbegin()
            restarts += 1
            return
        }
        (run, due) = (nil, nil)
        record(.failure(stopError), at: now)
        advance(at: now)
        if !state.isTerminal { state = .queued }
    }

    /// Frees a job that was bound to the node of its part.
    mutating func leavePart() { if followsPart { (node, followsPart) = (nil, false) } }

    /// Restarts a finished job from the failed link or the start.
    mutating func retry(from point: RetryPoint, at now: CoreMoment) {
        let start = point == .failed ? failedLink : nil
        go(to: start?.link ?? 0)
        carried = start?.incoming
        outcomes.removeAll { $0.link >= link }
        failedLink = nil
        lastFailure = nil
        stop = nil
        restarts = 0
        finishedAt = nil
        notBefore = nil
        due = nil
        state = .queued
        waiting = .nothing
        deadline = plan.deadline.map { now.steady(after: $0) }
    }
}
