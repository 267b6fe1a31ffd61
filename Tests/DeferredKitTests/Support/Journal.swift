import Foundation

/// What happened, in order, noted from any thread.
final class Journal<Entry: Sendable>: Sendable {
    private let lock = NSLock()
    // Unsafe: every access is under the lock above.
    nonisolated(unsafe) private var noted: [Entry] = []

    func note(_ entry: Entry) {
        lock.withLock { noted.append(entry) }
    }

    var entries: [Entry] { lock.withLock { noted } }
}
