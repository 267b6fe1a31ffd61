import DeferredKit
import JobCore
import JobModel
import Synchronization

/// The latest progress of one run, written by its source on any thread and read by the engine.
final class RunProgress: Sendable {
    private struct State {
        var update: ProgressUpdate?
        var updates = 0
        var unit = Progress.Unit.bytes
        var isDirty = false
    }

    let run: RunID
    private let state = Mutex(State())
    private let reports: ProgressReports

    init(run: RunID, reports: ProgressReports) {
        self.run = run
        self.reports = reports
    }

    func report(_ update: ProgressUpdate) {
        let isNews = state.withLock { state in
            state.update = update
            state.updates += 1
            defer { state.isDirty = true }
            return !state.isDirty
        }
        if isNews { reports.add(self) }
    }

    /// Says what the reports from now on count.
    func count(in unit: Progress.Unit) { state.withLock { $0.unit = unit } }

    /// The latest progress; nil before the first report. A later report counts as new again.
    func read() -> ProgressReport? {
        state.withLock { state in
            state.isDirty = false
            guard let update = state.update else { return nil }
            return ProgressReport(
                run: run, progress: Progress(completed: update.completed, total: update.total, unit: state.unit),
                updates: state.updates)
        }
    }
}

/// The runs that made progress since the engine last looked, each once. Sources report from any thread.
///
/// States: idle, awaited (the engine is about to look, or will by itself). Only the first run of an idle one wakes it.
final class ProgressReports: Sendable {
    private struct State {
        var runs: [RunProgress] = []
        var isAwaited = false
    }

    private let state = Mutex(State())
    private let wake: @Sendable () -> Void

    /// `wake` is called on a source's thread.
    init(wake: @escaping @Sendable () -> Void) {
        self.wake = wake
    }

    fileprivate func add(_ run: RunProgress) {
        let mustWake = state.withLock { state in
            state.runs.append(run)
            defer { state.isAwaited = true }
            return !state.isAwaited
        }
        if mustWake { wake() }
    }

    /// The latest report of each run that made progress.
    func read() -> [ProgressReport] {
        let runs = state.withLock { state in
            defer { state.runs = [] }
            return state.runs
        }
        return runs.compactMap { $0.read() }
    }

    /// Sets whether the engine looks again by itself, so that it need not be woken. True if it has to look at once, as
    /// a report came meanwhile.
    func await(_ isAwaited: Bool) -> Bool {
        state.withLock { state in
            state.isAwaited = isAwaited || !state.runs.isEmpty
            return !isAwaited && !state.runs.isEmpty
        }
    }
}
