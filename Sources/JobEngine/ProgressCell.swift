import DeferredKit
import JobModel
import Synchronization

/// The latest progress of one running job, written by its transfer and read by the engine.
///
/// However often a transfer reports, the engine hears of it once, until it has looked.
final class ProgressCell: Sendable {
    fileprivate struct State {
        var progress: Progress?
        var updates = 0
        /// How many reports there were when those of an interval were told last.
        var told: [(interval: Int, updates: Int)] = []
        var isAnnounced = false
        var isWatched = false
        var measuredAt: ContinuousClock.Instant?
        var measured: Int64 = 0
    }

    private let state = Mutex(State())
    private let announce: @Sendable () -> Void

    /// `announce` is called on the transfer's thread.
    init(announce: @escaping @Sendable () -> Void) {
        self.announce = announce
    }

    /// Takes a report in bytes.
    func report(_ update: ProgressUpdate) {
        report(Progress(completed: update.completed, total: update.total))
    }

    /// Takes a progress whose rate is not known.
    func report(_ update: Progress) {
        let now = ContinuousClock.now
        let isNews = state.withLock { state in
            var progress = update
            progress.rate = state.progress?.rate
            state.measure(&progress, at: now)
            state.progress = progress
            state.updates += 1
            // Of what is complete the end follows, and tells more.
            guard state.isWatched, !state.isAnnounced, update.total != update.completed else { return false }
            state.isAnnounced = true
            return true
        }
        if isNews { announce() }
    }

    /// Begins anew, for another step.
    func reset() {
        state.withLock { state in
            state.progress = nil
            state.updates = 0
            state.told = []
            state.measuredAt = nil
        }
    }

    /// Whether somebody wants to hear of changes: the next one is announced, whatever was announced to others before.
    func setWatched(_ isWatched: Bool) {
        state.withLock { state in
            state.isWatched = isWatched
            state.isAnnounced = false
        }
    }

    /// The latest progress, without taking note of having looked.
    var latest: Progress? { state.withLock(\.progress) }

    /// The latest progress, and how many reports came since those who are told every `interval` milliseconds were told last.
    func take(every interval: Int) -> (progress: Progress, updates: Int)? {
        state.withLock { state in
            state.isAnnounced = false
            guard let progress = state.progress else { return nil }
            return (progress, state.updates - state.exchangeTold(interval))
        }
    }
}

extension ProgressCell.State {
    /// The intervals that are remembered; who watches at yet another is told a count that is too high.
    private static let intervals = 16

    /// How many reports there were when those of `interval` were told last, which they are now.
    mutating func exchangeTold(_ interval: Int) -> Int {
        if let place = told.firstIndex(where: { $0.interval == interval }) {
            defer { told[place].updates = updates }
            return told[place].updates
        }
        if told.count == Self.intervals { told.removeFirst() }
        told.append((interval, updates))
        return 0
    }

    /// Works the rate out anew, when a quarter of a second went by since it was, as a mean that forgets.
    mutating func measure(_ progress: inout Progress, at now: ContinuousClock.Instant) {
        guard let before = measuredAt, progress.completed >= measured else {
            measuredAt = now
            measured = progress.completed
            progress.rate = nil
            return
        }
        let elapsed = before.duration(to: now) / .seconds(1)
        guard elapsed >= 0.25 else { return }
        let rate = Double(progress.completed - measured) / elapsed
        progress.rate = progress.rate.map { 0.6 * $0 + 0.4 * rate } ?? rate
        measuredAt = now
        measured = progress.completed
    }
}
