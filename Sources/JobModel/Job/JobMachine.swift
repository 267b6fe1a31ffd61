/// The life of a job: which event leads to which state, and what is to be done about it.
///
/// States: `scheduled`, `queued`, `running`; terminal: `succeeded`, `failed`, `cancelled`.
/// Invalid are: `due` unless scheduled, `start` unless queued, `finished` unless running, `restart` unless running,
/// `stop` in a terminal state, `retry` unless failed or cancelled.
extension Job {
    package enum Event: Sendable {
        /// The time it waited for has come.
        case due
        /// It got a slot of its queue.
        case start
        /// The running link ended. `size` is the outcome's `measuredSize`, where that is known; `random` is drawn from 0 ..< 1
        /// for the pause before a retry.
        case finished(Outcome, size: OutcomeSize? = nil, random: Double)
        /// It is to end before its time. Where a source is at work that takes its time to end and was told to, `finished` comes
        /// once it has.
        case stop(Stop, awaitsEnd: Bool = false)
        /// The daemon was started and finds it running.
        case restart
        case retry(RetryPoint)
    }

    package enum RetryPoint: String, Sendable, CaseIterable {
        case failed
        case start
    }

    package enum Action: Sendable, Hashable {
        /// Wait for a slot of the queue.
        case enqueue
        /// Run the step of the present link.
        case run
        /// Stop the step that runs, then run the present link, a `finally` one, or finish where there is none.
        case interrupt(thenRun: Bool)
        /// Do nothing until `notBefore`.
        case wait
        /// It is over; tell those who wait.
        case finish
        /// Nothing: what runs goes on.
        case none
    }

    /// An event that the job's state does not allow.
    package struct InvalidTransition: Error, Sendable, Equatable {
        package let state: JobState
    }

    /// Changes the state for `event` and says what is to be done.
    package mutating func handle(_ event: Event, at now: Timestamp) throws(InvalidTransition) -> Action {
        switch (event, state) {
        case (.due, .scheduled):
            state = .queued
            notBefore = nil
            if stop != nil { isGated = false }
            return .enqueue
        case (.start, .queued):
            begin(at: now)
            return .run
        case (.finished(let outcome, let size, let random), .running):
            return finished(outcome, size: size, random: random, at: now)
        case (.stop(let reason, let awaitsEnd), _) where !state.isTerminal:
            return stop(reason, at: now, awaitsEnd: awaitsEnd && state == .running)
        case (.restart, .running):
            return restart(at: now)
        case (.retry(let point), .failed), (.retry(let point), .cancelled):
            retry(from: point, at: now)
            return .enqueue
        default: throw InvalidTransition(state: state)
        }
    }

    /// Marks the present link as running.
    private mutating func begin(at now: Timestamp) {
        state = .running
        notBefore = nil
        startedAt = startedAt ?? now
        // An attempt that a restart of the daemon broke off does not count, but the link's time began with it.
        linkStartedAt = linkStartedAt ?? now
        attempt += 1
    }

    private mutating func finished(_ outcome: Outcome, size: OutcomeSize?, random: Double, at now: Timestamp) -> Action
    {
        // What was told to end comes to that, whatever it still made of it.
        var outcome = isEnding ? .failure(stopError) : outcome
        var size = isEnding ? nil : size
        if case .failure(var error) = outcome {
            error.link = link
            error.attempts = attempt
            outcome = .failure(error)
            size = nil
            if let pause = error.postponed {
                state = .scheduled
                lastFailure = error
                notBefore = now.adding(seconds: longerPause(than: pause, at: now))
                if attempt > 0 { attempt -= 1 }
                return .wait
            }
            if let pause = pause(after: error, random: random) {
                state = .scheduled
                lastFailure = error
                notBefore = now.adding(seconds: pause)
                return .wait
            }
        }
        record(outcome, size: size, at: now)
        return advance(at: now)
    }

    /// Seconds that what cannot begin waits at most before it is tried again.
    private static let longestPostponement = 60.0

    /// What cannot begin is tried again the more rarely the longer it has waited, as very many may wait for the same.
    private func longerPause(than pause: Double, at now: Timestamp) -> Double {
        let waited = linkStartedAt.map { now.seconds(since: $0) } ?? 0
        return max(pause, min(waited / 10, Self.longestPostponement))
    }

    /// The seconds before the next attempt, or nil where there is none.
    private func pause(after error: JobError, random: Double) -> Double? {
        guard error.isRetryable, let step else { return nil }
        let policy = spec.retryPolicy(of: step)
        guard attempt <= policy.max else { return nil }
        let pause = policy.delay(afterAttempt: attempt, random: random)
        return max(pause, min(error.retryAfter ?? 0, policy.maxDelay))
    }

    private mutating func record(_ outcome: Outcome, size: OutcomeSize? = nil, at now: Timestamp) {
        lastFailure = nil
        crashes = 0
        var failure: JobError?
        if case .failure(let error) = outcome { failure = error }
        outcomes.append(
            LinkOutcome(
                link: link, error: failure, startedAt: linkStartedAt ?? now, finishedAt: now, attempts: max(1, attempt))
        )
        if isAtFinally { return }
        // A retry does not go on at a failure that a later link has handled.
        if stop == nil { failedLink = failure == nil ? nil : FailedLink(link: link, carried: measured) }
        measured = MeasuredOutcome(outcome, size: size)
    }

    /// Goes to the next link that applies, or to the end.
    private mutating func advance(at now: Timestamp) -> Action {
        if let next = nextLink(after: link) {
            link = next
            attempt = 0
            linkStartedAt = nil
            begin(at: now)
            return .run
        }
        finish(at: now)
        return .finish
    }

    private func nextLink(after link: Int) -> Int? {
        guard let carried else { return nil }
        return spec.links.indices.dropFirst(link).first { index in
            (stop == nil || spec.links[index].isFinally) && spec.links[index].step(for: carried) != nil
        }.map { $0 + 1 }
    }

    private mutating func finish(at now: Timestamp) {
        finishedAt = now
        notBefore = nil
        switch (stop, carried) {
        case (.cancelled, _): state = .cancelled
        case (.deadline, _): state = .failed
        case (nil, .success): state = .succeeded
        case (nil, _): state = .failed
        }
    }

    /// The daemon that ran it is gone, and its source with it.
    private mutating func restart(at now: Timestamp) -> Action {
        guard isEnding else {
            if stop != nil { isGated = false }
            state = .queued
            attempt = max(0, attempt - 1)
            return .enqueue
        }
        record(.failure(stopError), at: now)
        guard let next = nextLink(after: link) else {
            finish(at: now)
            return .finish
        }
        link = next
        attempt = 0
        linkStartedAt = nil
        state = .queued
        return .enqueue
    }

    private mutating func stop(_ reason: Stop, at now: Timestamp, awaitsEnd: Bool) -> Action {
        guard stop == nil else { return .none }
        // It has done its work; the children of a `finally` link do not inherit it.
        deadlineAt = nil
        // Its list has given it up, so it will not start it.
        isGated = false
        let wasRunning = state == .running
        stop = reason
        // A retry goes on at the failure before a `finally` link, not at one of that link.
        if !isAtFinally || failedLink == nil { failedLink = FailedLink(link: link, carried: measured) }
        if wasRunning, isAtFinally {
            carried = .failure(stopError)
            return .none
        }
        lastFailure = nil
        if awaitsEnd { return .none }
        let error = stopError
        if wasRunning { record(.failure(error), at: now) }
        carried = .failure(error)
        // A link that never began, which may be a `finally` link, is not skipped.
        let last = wasRunning ? link : link - 1
        if let next = nextLink(after: max(0, last)) {
            // A `finally` link that waited for its retry goes on counting.
            if next != link || wasRunning {
                attempt = 0
                linkStartedAt = nil
            }
            link = next
            if wasRunning {
                begin(at: now)
                return .interrupt(thenRun: true)
            }
            // It waits for its turn as any other does, however many are stopped at once.
            state = .queued
            notBefore = nil
            return .enqueue
        }
        finish(at: now)
        return wasRunning ? .interrupt(thenRun: false) : .finish
    }

    /// Whether the present link runs either way, after a stop too.
    package var isAtFinally: Bool { link > 0 && spec.links[link - 1].isFinally }

    /// Whether its source was told to end, and nothing goes on before it has.
    package var isEnding: Bool { state == .running && stop != nil && !isAtFinally }

    private var stopError: JobError {
        var error = (stop ?? .cancelled).error
        error.link = link
        error.attempts = attempt
        return error
    }

    private mutating func retry(from point: RetryPoint, at now: Timestamp) {
        let start = point == .failed ? failedLink : nil
        link = start?.link ?? 0
        measured = start?.carried
        outcomes.removeAll { $0.link >= link }
        failedLink = nil
        lastFailure = nil
        stop = nil
        crashes = 0
        attempt = 0
        linkStartedAt = nil
        finishedAt = nil
        notBefore = nil
        state = .queued
        deadlineAt = spec.deadline.map { now.adding(seconds: $0) }
    }
}
