/// Runs callbacks on an actor, one after the other, in the order in which this executor received them.
public final class ActorExecutor<A: Actor>: CallbackExecutor, @unchecked Sendable {
    // Unchecked: mutable state is under `lock`.
    /// The actor that runs them.
    public let actor: A
    private let lock = Lock()
    private var jobs: [@Sendable () -> Void] = []
    private var isDraining = false

    /// Creates an executor, which retains the actor.
    public init(_ actor: A) { self.actor = actor }

    /// Adds the job to the actor's jobs.
    public func submit(_ job: @escaping @Sendable () -> Void) {
        let isFirst = lock.withLock {
            jobs.append(job)
            defer { isDraining = true }
            return !isDraining
        }
        // The jobs own the task, which ends with the last of them.
        if isFirst { Task { await drain(on: actor) } }
    }

    private func drain(on actor: isolated A) async {
        while let jobs = due {
            for job in jobs { job() }
            // The actor's other work has its turn before jobs that were added meanwhile.
            await Task.yield()
        }
    }

    private var due: [@Sendable () -> Void]? {
        lock.withLock {
            defer { jobs = [] }
            isDraining = !jobs.isEmpty
            return isDraining ? jobs : nil
        }
    }
}

extension CallbackExecutor {
    /// An actor, which runs the callbacks.
    public static func actor<A: Actor>(_ actor: A) -> ActorExecutor<A> where Self == ActorExecutor<A> {
        ActorExecutor(actor)
    }
}

extension Deferred {
    /// Observes the outcome from an actor, with a closure that may use the actor's state.
    @discardableResult
    public func upon<A: Actor>(
        on executor: ActorExecutor<A>,
        _ body: @escaping @Sendable (isolated A, Outcome) -> Void
    ) -> Observation {
        let actor = executor.actor
        return upon(on: executor) { outcome in actor.assumeIsolated { body($0, outcome) } }
    }

    /// Observes the progress from an actor, with a closure that may use the actor's state.
    ///
    /// Calls do not overlap.
    @discardableResult
    public func onProgress<A: Actor>(
        on executor: ActorExecutor<A>,
        _ body: @escaping @Sendable (isolated A, ProgressUpdate) -> Void
    ) -> Observation {
        let actor = executor.actor
        return onProgress(on: executor) { update in actor.assumeIsolated { body($0, update) } }
    }

    /// Transforms the value on an actor, with a closure that may use the actor's state.
    ///
    /// - Returns: The closure's result, or this Deferred's failure.
    public func map<U, A: Actor>(
        on executor: ActorExecutor<A>,
        _ transform: @escaping @Sendable (isolated A, Success) -> U
    ) -> Deferred<U, Failure> {
        let actor = executor.actor
        return map(on: executor) { value in actor.assumeIsolated { transform($0, value) } }
    }
}
