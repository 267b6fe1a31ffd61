import Glibc
import Synchronization

/// SIGTERM and SIGINT while the daemon starts, before anybody waits for them: without this they would end the process where it
/// is, by the signal.
///
/// As long as nothing is open it ends at once, with 0. From then on they are remembered, and the daemon stops in order as
/// soon as it serves.
enum StartSignals {
    private enum Phase {
        static let nothingOpen = 0, opening = 1, stopping = 2
    }

    private static let phase = Atomic<Int>(Phase.nothingOpen)

    /// To be called before there are threads.
    static func begin() {
        // Made here, as a handler must not make anything.
        phase.store(Phase.nothingOpen, ordering: .relaxed)
        for number in [SIGTERM, SIGINT] {
            signal(number) { _ in
                // What asks and what opens can be the same thread, so nothing is waited for.
                if StartSignals.phase.exchange(Phase.stopping, ordering: .relaxed) == Phase.nothingOpen { _exit(0) }
            }
        }
    }

    /// The state is about to be opened, and has to be closed from here on.
    static func opensState() {
        _ = phase.compareExchange(
            expected: Phase.nothingOpen, desired: Phase.opening, ordering: .relaxed)
    }

    /// Whether the daemon was told to stop meanwhile.
    static var wasToldToStop: Bool { phase.load(ordering: .relaxed) == Phase.stopping }
}
