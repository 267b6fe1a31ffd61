extension Deferred {
    /// Observes the outcome: calls a closure with it, once, on an executor.
    ///
    /// An observer has no interest in the work: a Deferred with only observers is cancelled as if it had none.
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
            body(Deferred.result(of: source))
        }
        append(waiter, leaving: Mark.looked)
        return Observation(waiter)
    }

    /// Observes the progress: calls a closure with each new value, in the producer's units, on an executor.
    ///
    /// Only the latest value is replayed, unchanged values are suppressed, and none follows the resolution. A slow
    /// closure misses values: once 16 wait, the newest replaces the last of them. Calls do not overlap; each is a job.
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

/// A callback of a Deferred that can be stopped.
///
/// Dropping the observation does not stop the callback.
public struct Observation: Sendable {
    @usableFromInline let waiter: DeferredWaiter

    @inlinable
    init(_ waiter: DeferredWaiter) {
        self.waiter = waiter
    }

    /// Stops the callback, never the work, from any thread.
    ///
    /// The callback does not start after this call, but may already be running.
    public func cancel() {
        waiter.retire()
    }
}
