import Glibc
import JobModel

/// Settles the fate of a round whose commit failed while SQLite synced the log.
///
/// SQLite reports the failure and rolls back, but a crash may leave the round's frames in the log. A small commit
/// overwrites the first of them. The others are then no part of the log, as the checksum of each frame includes that of
/// the frame before.
final class Settlement {
    /// Attempts before the round ends; the pause between them doubles.
    private static let attempts = 6
    private static let firstPause: UInt32 = 10_000

    private let connection: SQLiteConnection
    private var isOutstanding = false

    init(_ connection: SQLiteConnection) { self.connection = connection }

    /// Tries to settle for about a third of a second, after a failed commit. Otherwise, the next round begins with it.
    func settle() {
        isOutstanding = true
        var pause = Self.firstPause
        for attempt in 1...Self.attempts {
            if (try? finish()) != nil || attempt == Self.attempts { return }
            usleep(pause)
            pause *= 2
        }
    }

    /// Settles what is outstanding.
    func finish() throws(StoreError) {
        guard isOutstanding else { return }
        try connection.statement("UPDATE state SET settlements = settlements + 1").run()
        isOutstanding = false
    }
}
