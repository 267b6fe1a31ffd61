import Glibc
import Synchronization

/// SIGTERM and SIGINT during the start, when no service handles them yet.
///
/// Before the state is opened, they end the process at once, with status 0. From then on they are remembered, and the
/// daemon stops in order as soon as it serves.
enum StartSignals {
    private enum Phase {
        static let nothingOpen = 0, opening = 1, stopping = 2
    }

    private static let phase = Atomic<Int>(Phase.nothingOpen)

    /// Call this before starting threads.
    static func begin() {
        // Initialised here, because a signal handler must not initialise anything.
        phase.store(Phase.nothingOpen, ordering: .relaxed)
        for number in [SIGTERM, SIGINT] {
            signal(number) { _ in
                // This may interrupt the thread that opens the state, so it must not wait.
                if StartSignals.phase.exchange(Phase.stopping, ordering: .relaxed) == Phase.nothingOpen { _exit(0) }
            }
        }
    }

    /// Call this before opening the state, which must be closed from then on.
    static func opensState() {
        _ = phase.compareExchange(
            expected: Phase.nothingOpen, desired: Phase.opening, ordering: .relaxed)
    }

    static var wasToldToStop: Bool { phase.load(ordering: .relaxed) == Phase.stopping }
}
