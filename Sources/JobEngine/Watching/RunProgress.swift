import DeferredKit
import Dispatch
import JobModel
import Synchronization

/// The latest progress of one run, written by its source on any thread and read by all.
final class RunProgress: Sendable {
    private struct State {
        var latest: Progress?
        var updates = 0
        var told = 0
        var unit = Progress.Unit.bytes
        var rate = RateMeter()
        var isDirty = false
    }

    let job: JobID
    private let state = Mutex(State())
    private let reports: ProgressReports

    init(of job: JobID, reports: ProgressReports) {
        self.job = job
        self.reports = reports
    }

    func report(_ update: ProgressUpdate) {
        let isNews = state.withLock { state in
            state.latest = Progress(
                completed: update.completed, total: update.total, unit: state.unit,
                rate: state.rate.measure(update.completed, at: .now()))
            state.updates += 1
            defer { state.isDirty = true }
            return !state.isDirty
        }
        if isNews { reports.add(self) }
    }

    /// Says what the reports from now on count.
    func count(in unit: Progress.Unit) { state.withLock { $0.unit = unit } }

    /// Nil before the first report.
    var latest: Progress? { state.withLock(\.latest) }

    /// Bytes that it moved, as far as it counts those.
    var bytes: Int64 { latest.map { $0.unit == .bytes ? $0.completed : 0 } ?? 0 }

    /// A later report counts as new again.
    fileprivate func look() { state.withLock { $0.isDirty = false } }

    /// No later report counts.
    fileprivate func end() { state.withLock { $0.isDirty = true } }

    /// How many reports there were since this was last asked.
    func takeUpdates() -> Int {
        state.withLock { state in
            defer { state.told = state.updates }
            return state.updates - state.told
        }
    }
}

/// The runs that made progress since the engine last looked, each once. Sources report from any thread.
///
/// States: idle, and awaited (the engine is about to look, or will by itself). Only the first run of an idle one wakes it.
final class ProgressReports: Sendable {
    private struct State {
        var runs: [ObjectIdentifier: RunProgress] = [:]
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
            state.runs[ObjectIdentifier(run)] = run
            defer { state.isAwaited = true }
            return !state.isAwaited
        }
        if mustWake { wake() }
    }

    /// A run is over. Where no client watches, the engine never looks at what ran.
    func remove(_ run: RunProgress) {
        run.end()
        state.withLock { _ = $0.runs.removeValue(forKey: ObjectIdentifier(run)) }
    }

    /// Has the next report wake the engine; false where there is one already.
    func rest() -> Bool {
        state.withLock { state in
            state.isAwaited = !state.runs.isEmpty
            return state.runs.isEmpty
        }
    }

    /// The jobs whose runs made progress.
    func take() -> Set<JobID> {
        let runs = state.withLock { state in
            defer { state.runs = [:] }
            return state.runs.values
        }
        for run in runs { run.look() }
        return Set(runs.map(\.job))
    }
}

/// Measures a rate as an exponentially weighted mean.
struct RateMeter {
    /// Nanoseconds between two measurements, at least.
    private static let window: UInt64 = 250_000_000

    private var measuredAt: UInt64?
    private var measured: Int64 = 0
    private var rate: Double?

    /// The rate in units a second; nil before there were two measurements.
    mutating func measure(_ completed: Int64, at time: DispatchTime) -> Double? {
        let now = time.uptimeNanoseconds
        guard let before = measuredAt, completed >= measured, now >= before else {
            measuredAt = now
            measured = completed
            rate = nil
            return nil
        }
        guard now - before >= Self.window else { return rate }
        let present = Double(completed - measured) / (Double(now - before) / 1e9)
        rate = rate.map { 0.6 * $0 + 0.4 * present } ?? present
        measuredAt = now
        measured = completed
        return rate
    }
}
