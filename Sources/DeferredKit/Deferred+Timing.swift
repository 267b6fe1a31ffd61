extension Deferred {
    /// Passes the outcome on some time after it is there.
    ///
    /// It is passed on from a thread of Swift's own pool. Cancelling during the wait fails at once where `Failure` is
    /// `any Error`; where it is not, the outcome is passed on at once.
    ///
    /// - Parameters:
    ///   - by: How long the outcome waits; nothing, unless positive.
    ///   - clock: What measures the time.
    /// - Returns: This Deferred's outcome, value or failure, later.
    public func delay<C: Clock>(
        _ by: Duration,
        clock: C = ContinuousClock()
    ) -> Deferred where C.Duration == Duration {
        link(hopping: false, to: Deferred.self) { source, target, trampoline, _ in
            let outcome = unsafeDowncast(source, to: Deferred.self).storage.unsafelyUnwrapped
            guard by > .zero else {
                unsafeDowncast(target, to: Deferred.self).settle(outcome, trampoline)
                return .done
            }
            let later = Deferred.afterSleep(of: by, clock) { _ in outcome }
            return .follow(Following(later, isTransparent: true, Deferred.passOn))
        }
    }

    /// Gives up after some time, with a failure of this Deferred's own type.
    ///
    /// The timer keeps the Deferred that is returned here until it fires, on a thread of Swift's own pool.
    ///
    /// - Parameters:
    ///   - after: How long to wait at most, from now.
    ///   - clock: What measures the time.
    ///   - failure: Makes the failure, on the timer's thread.
    /// - Returns: This Deferred's outcome, or that failure; then it has withdrawn from this Deferred.
    public func timeout<C: Clock>(
        _ after: Duration,
        clock: C = ContinuousClock(),
        failing failure: @escaping @Sendable (TimeoutError) -> Failure
    ) -> Deferred where C.Duration == Duration {
        let target = link(hopping: false, to: Deferred.self, Deferred.passOn)
        target.startTimer(after, clock) { $0.failAndWithdraw(failure(TimeoutError(after: after))) }
        return target
    }

    /// Tries an operation with a typed failure until it succeeds or has been tried often enough.
    ///
    /// Cancelling the Deferred that is returned cancels the attempt or the delay it is in; a delay that is cancelled
    /// ends with the failure of the attempt before it. A `CancellationError` is never retried. The closures run on the
    /// thread that delivers the failure of the attempt before, `operation` after a delay on one of Swift's own pool.
    ///
    /// - Parameters:
    ///   - attempts: How often the operation is called at most; less than 1 counts as 1.
    ///   - delay: What is slept after the attempt of this number failed; nothing, unless positive.
    ///   - clock: What measures the delays.
    ///   - condition: Whether this failure is worth another attempt.
    ///   - operation: Gets the number of the attempt, 1 at first. The first call is made at once, on this thread.
    /// - Returns: The value of the attempt that succeeded or the failure of the last.
    @_disfavoredOverload
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
        // The task is this Deferred's producer: it holds it, and is cancelled with it.
        let task = Task {
            do {
                try await clock.sleep(for: duration)
                deferred.settle(outcome(false), nil)
            } catch {
                deferred.settle(outcome(true), nil)
            }
        }
        deferred.whenCancelled { task.cancel() }
        return deferred
    }

    /// Calls a closure after some time unless there is an outcome before.
    private func startTimer<C: Clock>(
        _ after: Duration,
        _ clock: C,
        _ fire: @escaping @Sendable (Deferred) -> Void
    ) where C.Duration == Duration {
        guard marks & Mark.resolved == 0 else { return }
        // The task is owned by the callback below, which cancels it as soon as there is an outcome.
        let task = Task {
            do {
                try await clock.sleep(for: after)
            } catch {
                return
            }
            fire(self)
        }
        append(OutcomeWaiter(hopping: false) { _, _, _ in task.cancel() }, leaving: 0)
    }

    /// Sets what stops the producer.
    func whenCancelled(_ stop: @escaping @Sendable () -> Void) {
        let extras = DeferredExtras()
        extras.onCancel = { _ in stop() }
        let marks = lock()
        let isOpen = marks & Mark.resolved == 0
        if isOpen { self.extras = extras }
        unlock(marks)
    }
}

extension Deferred where Failure == any Error {
    /// Runs an asynchronous operation in a task of its own.
    ///
    /// Cancelling the Deferred cancels the task and fails with a `CancellationError`; what the operation then still
    /// gives is ignored.
    ///
    /// - Parameters:
    ///   - priority: The task's priority, or nil for the caller's.
    ///   - operation: Gives the value or throws the failure, on Swift's own pool.
    public convenience init(
        priority: TaskPriority? = nil,
        _ operation: @escaping @Sendable () async throws -> Success
    ) {
        self.init(pending: 0)
        // The task is this Deferred's producer: it holds it, and is cancelled with it.
        let task = Task(priority: priority) {
            do {
                settle(.success(try await operation()), nil)
            } catch {
                settle(.failure(error), nil)
            }
        }
        whenCancelled { task.cancel() }
    }

    /// Gives up after some time.
    ///
    /// The timer keeps the Deferred that is returned here until it fires, on a thread of Swift's own pool.
    ///
    /// - Parameters:
    ///   - after: How long to wait at most, from now.
    ///   - clock: What measures the time.
    /// - Returns: This Deferred's outcome, or a ``TimeoutError``; then it has withdrawn from this Deferred.
    public func timeout<C: Clock>(
        _ after: Duration,
        clock: C = ContinuousClock()
    ) -> Deferred<Success, any Error> where C.Duration == Duration {
        timeout(after, clock: clock) { $0 }
    }

    /// Tries an operation until it succeeds or has been tried often enough.
    ///
    /// Cancelling the Deferred that is returned cancels the attempt or the delay it is in. A `CancellationError` is
    /// never retried. The closures run on the thread that delivers the failure of the attempt before, `operation` after
    /// a delay on one of Swift's own pool.
    ///
    /// - Parameters:
    ///   - attempts: How often the operation is called at most; less than 1 counts as 1.
    ///   - delay: What is slept after the attempt of this number failed; nothing, unless positive.
    ///   - clock: What measures the delays.
    ///   - condition: Whether this failure is worth another attempt.
    ///   - operation: Gets the number of the attempt, 1 at first. The first call is made at once, on this thread.
    /// - Returns: The value of the attempt that succeeded or the failure of the last.
    public static func retry<C: Clock>(
        attempts: Int,
        delay: @escaping @Sendable (Int) -> Duration = { _ in .zero },
        clock: C = ContinuousClock(),
        if condition: @escaping @Sendable (any Error) -> Bool = { _ in true },
        _ operation: @escaping @Sendable (Int) -> Deferred
    ) -> Deferred where C.Duration == Duration {
        @Sendable func attempt(_ number: Int) -> Deferred {
            operation(number).fail { error throws -> Deferred in
                guard number < attempts, !(error is CancellationError), condition(error) else { throw error }
                let pause = delay(number)
                guard pause > .zero else { return attempt(number + 1) }
                return Deferred<Void, any Error> { try await clock.sleep(for: pause) }
                    .flatMap { attempt(number + 1) }
            }
        }
        return attempt(1)
    }
}
