import JobModel

/// The life of a job: which event leads to which state, and what is to be done about it.
///
/// scheduled -> queued -> running -> succeeded or failed; running -> scheduled (retry); running -> queued (a run that ended
/// with its daemon); any of these -> cancelled, or failed (deadline); failed or cancelled -> queued (retry by hand).
extension JobRow {
    enum Action: Hashable {
        /// It waits for a slot of its queue.
        case enqueue
        /// The step of the present link is to be run, in the slot that it has.
        case run
        /// It waits for its time.
        case wait
        /// It is over.
        case finish
        /// Its run is to be told to end; what follows is decided once it has.
        case interrupt
        /// Nothing: it goes on.
        case none
    }

    /// It got a slot of its queue: a run of the present link begins.
    mutating func begin(_ run: RunID?, at now: CoreMoment) {
        state = .running
        waiting = .nothing
        self.run = run
        due = nil
        notBefore = nil
        startedAt = startedAt ?? now.wall
        // An attempt that a restart of the daemon broke off does not count, but the link's time began with it.
        linkStartedAt = linkStartedAt ?? now.wall
        attempt += 1
    }

    /// A run that could not go on for want of a permit gives its slot back, as if it had not begun.
    mutating func unbegin(waitingFor host: String) {
        state = .queued
        run = nil
        self.host = host
        attempt -= 1
    }

    /// The time that it waited for has come.
    mutating func fellDue() {
        state = .queued
        due = nil
        notBefore = nil
    }

    /// The present link ended.
    mutating func finished(_ outcome: Carried, at now: CoreMoment) -> Action {
        run = nil
        waiting = .nothing
        due = nil
        // What was told to end comes to that, whatever it still made of it.
        var outcome = isEnding ? .failure(stopError) : outcome
        if case .failure(var error) = outcome {
            error.link = link
            error.attempts = max(1, attempt)
            outcome = .failure(error)
            if let pause = pause(after: error, at: now) {
                state = .scheduled
                lastFailure = error
                due = now.steady(after: pause)
                notBefore = now.wall.adding(seconds: pause)
                return .wait
            }
        }
        record(outcome, at: now)
        return advance(at: now)
    }

    /// Seconds that what cannot begin waits at most before it is tried again.
    private static let longestPostponement = 60.0

    /// The seconds before the next attempt; nil where there is none.
    private mutating func pause(after error: JobError, at now: CoreMoment) -> Double? {
        if let pause = error.postponed {
            attempt = max(0, attempt - 1)
            // The more rarely the longer it has waited, as very many may wait for the same.
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
                attempts: max(1, attempt)))
        if isAtFinally { return }
        // A retry does not go on at a failure that a later link has handled.
        failedLink = outcome.error == nil ? nil : FailedLink(link: link, incoming: carried)
        carried = outcome
    }

    /// Goes to the next link that applies, or to the end.
    private mutating func advance(at now: CoreMoment) -> Action {
        guard let next = nextLink(after: link) else {
            finish(at: now)
            return .finish
        }
        go(to: next)
        return .run
    }

    private mutating func go(to next: Int) {
        link = next
        attempt = 0
        linkStartedAt = nil
        host = nil
    }

    private func nextLink(after link: Int) -> Int? {
        guard carried != nil, link < plan.links.count else { return nil }
        return (link + 1...plan.links.count).first { number in
            (stop == nil || plan.isFinally(number)) && plan.step(number, for: carried) != nil
        }
    }

    private mutating func finish(at now: CoreMoment) {
        finishedAt = now.wall
        due = nil
        notBefore = nil
        deadline = nil
        switch (stop, carried) {
        case (.cancelled, _): state = .cancelled
        case (.deadline, _): state = .failed
        case (nil, .success): state = .succeeded
        case (nil, _): state = .failed
        }
    }

    /// It is to end before its time.
    mutating func stop(_ reason: Stop, at now: CoreMoment) -> Action {
        guard stop == nil else { return .none }
        // It has done its work; the children of a `finally` link do not inherit it.
        deadline = nil
        let wasRunning = state == .running
        stop = reason
        // A retry goes on at the failure before a `finally` link, not at one of that link.
        if !isAtFinally || failedLink == nil { failedLink = FailedLink(link: link, incoming: carried) }
        if wasRunning, isAtFinally {
            carried = .failure(stopError)
            return .none
        }
        lastFailure = nil
        if run != nil { return .interrupt }
        let error = stopError
        if wasRunning { record(.failure(error), at: now) }
        carried = .failure(error)
        waiting = .nothing
        due = nil
        notBefore = nil
        // A link that never began, which may be a `finally` link, is not skipped.
        guard let next = nextLink(after: wasRunning ? link : max(0, link - 1)) else {
            finish(at: now)
            return .finish
        }
        if next != link || wasRunning { go(to: next) }
        state = .queued
        return .enqueue
    }

    /// Whether its source was told to end, and nothing goes on before it has.
    var isEnding: Bool { state == .running && stop != nil && !isAtFinally }

    private var stopError: JobError {
        var error = (stop ?? .cancelled).error
        error.link = link
        error.attempts = attempt
        return error
    }

    /// The daemon that ran it is gone, and its run with it.
    mutating func restart(at now: CoreMoment) -> Action {
        run = nil
        waiting = .nothing
        due = nil
        guard isEnding else {
            state = .queued
            attempt = max(0, attempt - 1)
            return .enqueue
        }
        record(.failure(stopError), at: now)
        guard let next = nextLink(after: link) else {
            finish(at: now)
            return .finish
        }
        go(to: next)
        state = .queued
        return .enqueue
    }

    /// It runs again, from the link that failed or from the start. Only of a failed or cancelled job.
    mutating func retry(from point: RetryPoint, at now: CoreMoment) {
        let start = point == .failed ? failedLink : nil
        let incoming = start?.incoming
        link = start?.link ?? 0
        carried = incoming
        outcomes.removeAll { $0.link >= link }
        failedLink = nil
        lastFailure = nil
        stop = nil
        crashes = 0
        attempt = 0
        linkStartedAt = nil
        finishedAt = nil
        notBefore = nil
        due = nil
        host = nil
        state = .queued
        waiting = .nothing
        deadline = plan.deadline.map { now.steady(after: $0) }
    }
}
