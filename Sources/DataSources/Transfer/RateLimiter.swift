import JobModel
import LoopTasks
import NIOCore
import Synchronization

/// Limits the bytes per second of a download over all of its connections, or of all transfers of a queue.
package final class RateLimiter: Sendable {
    struct State {
        var rate: Double?
        /// The bytes that were taken, and those of them that are due.
        var taken = 0.0
        var due = 0.0
        var countedAt: NIODeadline?

        /// How long it takes until `place` bytes are due; nil if they are.
        mutating func pause(until place: Double, at now: NIODeadline) -> TimeAmount? {
            let elapsed = countedAt.map { Double((now - $0).nanoseconds) / 1e9 } ?? 0
            countedAt = now
            due = rate.map { min(taken, due + max(0, elapsed) * $0) } ?? taken
            guard let rate, due < place else { return nil }
            return .seconds(saturating: (place - due) / rate)
        }

        /// Takes `count` bytes; returns the place of the last of them.
        mutating func take(_ count: Int, at now: NIODeadline) -> Double {
            _ = pause(until: 0, at: now)
            taken += Double(count)
            return taken
        }
    }

    private let state: Mutex<State>

    package init(bytesPerSecond: Int?) { state = Mutex(State(rate: bytesPerSecond.map(Double.init))) }

    /// Changes the limit, for transfers that are waiting too.
    package func set(bytesPerSecond: Int?) { state.withLock { $0.rate = bytesPerSecond.map(Double.init) } }

    var isLimited: Bool { state.withLock { $0.rate != nil } }

    /// The most bytes to handle at a time: a quarter of a second's, so that progress is smooth.
    var largestPiece: Int { state.withLock { $0.rate.map { max(4096, Int(saturating: $0 / 4)) } ?? .max } }

    /// Waits until `count` more bytes are due. A transfer that is interrupted meanwhile keeps these bytes, and gets no others.
    func wait(for count: Int, _ control: TransferControl) async throws(JobError) {
        try control.check()
        let place = state.withLock { $0.take(count, at: control.clock.now) }
        while let pause = state.withLock({ $0.pause(until: place, at: control.clock.now) }) {
            do throws(JobError) {
                // The limit may change meanwhile.
                try await control.sleep(for: min(pause, .seconds(1)))
            } catch {
                if control.isInterrupted, !Task.isCancelled { return }
                throw error
            }
        }
    }
}
