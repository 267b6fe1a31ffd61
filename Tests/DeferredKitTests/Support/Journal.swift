import DeferredKit
import Foundation

/// Events in order, recorded from any thread.
final class Journal<Entry: Sendable>: Sendable {
    private let lock = NSLock()
    // Unsafe: every access is under the lock above.
    nonisolated(unsafe) private var noted: [Entry] = []

    func note(_ entry: Entry) {
        lock.withLock { noted.append(entry) }
    }

    func clear() {
        let parting = lock.withLock {
            let parting = noted
            noted = []
            return parting
        }
        withExtendedLifetime(parting) {}
    }

    var entries: [Entry] { lock.withLock { noted } }
}

/// A promise that notes its cancellation.
func noting<F: Error>(
    _ journal: Journal<String>,
    _ name: String = "cancelled",
    failing: F.Type = (any Error).self
) -> Promise<Int, F> {
    Promise { _ in journal.note(name) }
}
