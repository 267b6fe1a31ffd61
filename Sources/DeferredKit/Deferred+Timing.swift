/// The longest sleep: clocks trap if the time of its end exceeds their range.
private let century = Duration.seconds(36_525 * 86_400)

extension Deferred {
    /// Passes the outcome on after a delay.
    ///
    /// A thread of Swift's own pool passes it on. Cancelling during the delay fails with a `CancellationError` at once
    /// if `Failure` can hold one; otherwise the outcome is passed on at once.
    ///
    /// - Parameter by: How long to delay the outcome, value or failure, a century at most; none unless positive.
    public func delay<C: Clock>(_ by: Duration, clock: C = ContinuousClock()) -> Deferred where C.Duration == Duration {
        link(hopping: false, to: Deferred.self) { source, target, trampoline, _ in
            let outcome = Deferred.result(of: source)
            guard by > .zero else {
                return unsafeDowncast(target, to: Deferred.self).end(outcome, trampoline)
            }
            let later = Deferred.afterSleep(of: by, clock) { _ in outcome }
            return .follow(Following(later, isTransparent: true, Deferred.passOn))
        }
    }

    /// Fails after a time limit, with a failure of this Deferred's own type.
    ///
    /// The timer retains the returned Deferred until it fires, on a thread of Swift's own pool.
    ///
    /// - Parameters:
    ///   - after: The time limit, from now; a century at most.
    ///   - failure: Makes the failure, on the timer's thread, before the result withdraws from this Deferred.
    public func timeout<C: Clock>(
        _ after: Duration,
        clock: C = ContinuousClock(),
        failing failure: @escaping @Sendable (TimeoutError) -> Failure
    ) -> Deferred where C.Duration == Duration {
        let target = link(hopping: false, to: Deferred.self, Deferred.passOn)
        guard !target.isResolved else { return target }
        // The callback below owns the task and cancels it as soon as there is an outcome.
        let task = Task {
            guard (try? await clock.sleep(for: min(after, century))) != nil else { return }
            target.failAndWithdraw(failure(TimeoutError(after: after)))
        }
        target.append(OutcomeWaiter(hopping: false) { _, _, _ in task.cancel() }, leaving: 0)
        return target
    }

    /// Retries an operation until it succeeds or its attempts are used up.
    ///
    /// Cancelling the returned Deferred cancels the current attempt or delay; with a typed failure, a cancelled delay
    /// ends with that of the previous attempt. A `CancellationError` is never retried. The closures run on the thread
    /// that delivers the failure of the previous attempt, and `operation` after a delay on one of Swift's own pool.
    ///
    /// - Parameters:
    ///   - attempts: The maximum number of calls of the operation; less than 1 counts as 1.
    ///   - delay: The delay after the failure of the attempt with this number; none unless positive, a century at most.
    ///   - operation: Gets the number of the attempt, from 1. The first call happens at once, on this thread.
    /// - Returns: The value of the successful attempt, or the failure of the last.
    public static func retry<C: Clock>(
        attempts: Int,
        delay: @escaping @Sendable (Int) -> Duration = { _ in .zero },
        clock: C = ContinuousClock(),
        if condition: @escaping @Sendable (Failure) -> Bool = { _ in true },
        _ operation: @escaping @Sendable (Int) -> Deferred
    ) -> Deferred where C.Duration == Duration {
        @Sendable func attempt(_ number: Int) -> Deferred {
            operation(number).flatMapError { error -> Deferred in
                guard number < attempts, !(error is CancellationError), condition(error) else { return .failed(error) }
                let pause = delay(number)
                guard pause > .zero else { return attempt(number + 1) }
                let slept = Deferred<Void, Failure>.afterSleep(of: pause, clock) { wasCancelled in
                    wasCancelled ? .failure(error) : .success(())
                }
                return slept.flatMap { attempt(number + 1) }
            }
        }
        return attempt(1)
    }

    /// Resolves after some time, or at once when it is cancelled.
    private static func afterSleep<C: Clock>(
        of duration: Duration,
        _ clock: C,
        _ outcome: @escaping @Sendable (_ wasCancelled: Bool) -> Outcome
    ) -> Deferred where C.Duration == Duration {
        let deferred = Deferred(pending: 0)
        // The task is this Deferred's producer: it retains it, and is cancelled with it.
        let task = Task {
            let wasCancelled = (try? await clock.sleep(for: min(duration, century))) == nil
            let failure = wasCancelled ? CancellationError() as? Failure : nil
            deferred.settle(failure.map { .failure($0) } ?? outcome(wasCancelled), nil)
        }
        deferred.whenCancelled { task.cancel() }
        return deferred
    }

    /// Sets the closure that stops the producer.
    func whenCancelled(_ stop: @escaping @Sendable () -> Void) {
        let fresh = DeferredExtras()
        let marks = lock()
        if marks & Mark.resolved == 0 {
            let extras = self.extras ?? fresh
            extras.onCancel = { _ in stop() }
            self.extras = extras
        }
        unlock(marks)
    }
}

extension Deferred where Failure == any Error {
    /// Runs an asynchronous operation in a task of its own.
    ///
    /// Cancelling the Deferred cancels the task and fails with a `CancellationError`; later results of the operation
    /// are ignored.
    ///
    /// - Parameters:
    ///   - priority: The task's priority, or nil for the caller's.
    ///   - operation: Returns the value or throws the failure, on Swift's own pool.
    public convenience init(
        priority: TaskPriority? = nil,
        _ operation: @escaping @Sendable () async throws -> Success
    ) {
        self.init(pending: 0)
        // The task is this Deferred's producer: it retains it, and is cancelled with it.
        let task = Task(priority: priority) {
            do {
                settle(.success(try await operation()), nil)
            } catch {
                settle(.failure(error), nil)
            }
        }
        whenCancelled { task.cancel() }
    }

    /// Fails with a ``TimeoutError`` after a time limit, like ``timeout(_:clock:failing:)``.
    public func timeout<C: Clock>(
        _ after: Duration,
        clock: C = ContinuousClock()
    ) -> Deferred<Success, any Error> where C.Duration == Duration {
        timeout(after, clock: clock) { $0 }
    }
}
