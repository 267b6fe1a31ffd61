extension Deferred {
    /// Observes the outcome: calls a closure with it.
    ///
    /// An observer has no interest in the work: a Deferred that has only observers left is cancelled as if it had none.
    ///
    /// - Parameters:
    ///   - executor: Where the closure runs.
    ///   - body: Gets the outcome, once.
    /// - Returns: What stops this callback.
    @inlinable
    @discardableResult
    public func upon<X: CallbackExecutor>(
        on executor: X = .inline,
        _ body: @escaping @Sendable (Outcome) -> Void
    ) -> Observation {
        let waiter = OutcomeWaiter(hopping: X.self != InlineExecutor.self) { source, waiter, arriving in
            if X.self != InlineExecutor.self, arriving {
                let job = ScheduledWaiter(waiter, from: source)
                return executor.submit { job.run() }
            }
            body(unsafeDowncast(source, to: Deferred.self).storage.unsafelyUnwrapped)
        }
        append(waiter, leaving: Mark.looked)
        return Observation(waiter)
    }

    /// Observes the progress: calls a closure with each new value.
    ///
    /// Nothing is replayed except the latest value, unchanged values are suppressed, and none comes after
    /// resolution. A slow closure misses values: once 16 wait, the newest replaces the last of them.
    ///
    /// - Parameters:
    ///   - executor: Where the closure runs; one call follows another.
    ///   - body: Gets the progress, in the producer's units.
    /// - Returns: What stops this callback.
    @discardableResult
    public func onProgress<X: CallbackExecutor>(
        on executor: X = .inline,
        _ body: @escaping @Sendable (ProgressUpdate) -> Void
    ) -> Observation {
        let submit: ProgressWaiter.Submit = { executor.submit($0) }
        let waiter = ProgressWaiter(submit: X.self == InlineExecutor.self ? nil : submit, body)
        append(waiter, leaving: 0)
        return Observation(waiter)
    }
}

/// One callback of a Deferred, to be stopped when it is no longer wanted.
///
/// Dropping it changes nothing; the callback stays.
public struct Observation: Sendable {
    @usableFromInline let waiter: ObservingWaiter

    @inlinable
    init(_ waiter: ObservingWaiter) {
        self.waiter = waiter
    }

    /// Stops the callback, never the work, from any thread.
    ///
    /// After this it does not begin to run; it may be running already.
    public func cancel() {
        waiter.retire()
    }
}
