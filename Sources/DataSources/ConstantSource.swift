import DeferredKit
import JobModel

/// The sources `value` and `error`: an outcome that is known already.
struct ConstantSource: DataSource {
    let outcome: Result<JSON, JobError>

    func start() -> Deferred<JSON, any Error> {
        Deferred(outcome.mapError { $0 as any Error })
    }
}
