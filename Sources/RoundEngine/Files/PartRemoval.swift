import DataSources
import Dispatch
import JobModel
import RoundCore
import Synchronization

/// Removes what transfers have left.
extension EngineServices {
    /// How long the engine waits for files to be removed: a file system may not answer.
    private static let patience = DispatchTimeInterval.seconds(1)

    /// Removes the files that a piece of work names, and calls `done` once they are gone or that has taken too long.
    func removeParts(_ work: WorkRow, _ done: @escaping @Sendable () -> Void) {
        let isDone = Atomic(false)
        let end = { @Sendable in
            if !isDone.exchange(true, ordering: .relaxed) { done() }
        }
        DispatchQueue.global(qos: .utility).asyncAfter(deadline: .now() + Self.patience, execute: end)
        // Owned by nothing: it ends by itself, whether the engine still waits for it or not.
        Task(executorPreference: library.executor) { [library] in
            for checkpoint in JSON(stored: work.payload).array ?? [] {
                await library.discard(checkpoint, of: work.job, owner: work.owner)
            }
            end()
        }
    }
}
