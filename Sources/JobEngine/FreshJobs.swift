import JobModel
import Synchronization

/// The jobs that made progress since the engine looked, told by their transfers from any thread.
///
/// States: idle, awaited (the engine is about to look, or looks when an interval ends). Only the first job of an idle one
/// wakes the engine. It holds a job at most once for each audience that began since the engine looked.
final class FreshJobs: Sendable {
    private struct State {
        var jobs: [JobID] = []
        var isAwaited = false
    }

    private let state = Mutex(State())

    /// Adds a job; true where the engine must be woken for it.
    func add(_ job: JobID) -> Bool {
        state.withLock { state in
            state.jobs.append(job)
            defer { state.isAwaited = true }
            return !state.isAwaited
        }
    }

    /// What the engine has to look at.
    func take() -> [JobID] {
        state.withLock { state in
            defer { state.jobs = [] }
            return state.jobs
        }
    }

    /// The engine has looked, and looks again by itself where `isAwaited`; false where it has to look now, as something
    /// came meanwhile.
    func settle(isAwaited: Bool) -> Bool {
        state.withLock { state in
            guard isAwaited || state.jobs.isEmpty else { return false }
            state.isAwaited = isAwaited
            return true
        }
    }
}
