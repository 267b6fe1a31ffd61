import Foundation
import Synchronization

/// Reports a core that never returns from an input, which its own thread cannot do.
enum Watchdog {
    /// The most CPU seconds for one input, which normally takes microseconds.
    private static let patience = 20.0
    /// Inputs handed to the core in all runs.
    private static let inputs = Atomic<Int>(0)
    private static let seed = Atomic<UInt64>(0)

    static func begins(_ seed: UInt64) { self.seed.store(seed, ordering: .relaxed) }

    static func inputBegins() { inputs.add(1, ordering: .relaxed) }

    /// Watches from a separate thread, which ends with the process.
    static func start(hours: Double) {
        Thread.detachNewThread {
            var (seen, since) = (-1, seconds())
            while true {
                Thread.sleep(forTimeInterval: 2)
                let now = inputs.load(ordering: .relaxed)
                if now != seen { (seen, since) = (now, seconds()) }
                guard seconds() - since > patience else { continue }
                let seed = seed.load(ordering: .relaxed)
                print(
                    "seed \(seed): FAILED, invariant 3: the core does not return from an input; "
                        + "repeat with: make simulate SEED=\(seed) HOURS=\(hours)")
                exit(1)
            }
        }
    }

    /// Returns the CPU time.
    static func seconds() -> Double { Double(clock()) / Double(CLOCKS_PER_SEC) }
}
