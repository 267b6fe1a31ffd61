/// Runs callbacks on the main actor, in the order in which they become due.
///
/// In addition to the closures that any executor takes, the methods here take closures that are isolated to the main
/// actor. The methods of ``ActorExecutor`` cannot replace them: to the compiler, `@MainActor` and a parameter `isolated
/// MainActor` are different isolations. All of them run on the one executor for the main actor.
public struct MainActorExecutor: CallbackExecutor {
    fileprivate static let shared = ActorExecutor(MainActor.shared)

    /// Creates the executor; `.mainActor` is the same.
    public init() {}

    /// Adds the job to the main actor's jobs.
    public func submit(_ job: @escaping @Sendable () -> Void) {
        MainActorExecutor.shared.submit(job)
    }
}

extension CallbackExecutor where Self == MainActorExecutor {
    /// The main actor.
    public static var mainActor: MainActorExecutor { MainActorExecutor() }
}

extension Deferred {
    /// Observes the outcome from the main actor.
    @discardableResult
    public func upon(
        on executor: MainActorExecutor,
        _ body: @escaping @MainActor @Sendable (Outcome) -> Void
    ) -> Observation {
        upon(on: MainActorExecutor.shared) { (outcome: Outcome) -> Void in MainActor.assumeIsolated { body(outcome) } }
    }

    /// Observes the progress from the main actor.
    ///
    /// Calls do not overlap.
    @discardableResult
    public func onProgress(
        on executor: MainActorExecutor,
        _ body: @escaping @MainActor @Sendable (ProgressUpdate) -> Void
    ) -> Observation {
        onProgress(on: MainActorExecutor.shared) { (update: ProgressUpdate) -> Void in
            MainActor.assumeIsolated { body(update) }
        }
    }

    /// Transforms the value on the main actor.
    ///
    /// - Returns: The closure's result, or this Deferred's failure.
    public func map<U>(
        on executor: MainActorExecutor,
        _ transform: @escaping @MainActor @Sendable (Success) -> U
    ) -> Deferred<U, Failure> {
        map(on: MainActorExecutor.shared) { (value: Success) -> U in MainActor.assumeIsolated { transform(value) } }
    }
}
