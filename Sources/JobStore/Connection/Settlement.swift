import Glibc
import JobModel

/// Settles the fate of a round whose commit failed while the log was synced.
///
/// SQLite reports such a failure and rolls back, and yet the round's frames may be in the log after a crash. A small commit
/// writes over the first of them: then the others are no part of the log any more, as each frame's checksum goes on from
/// the one before it.
final class Settlement {
    /// Tries before a caller is told; the pauses between them double.
    private static let tries = 6
    private static let firstPause: UInt32 = 10_000

    private let statement: PreparedStatement
    /// The number of the last settlement: each writes another, so that there is something to write.
    private var round: Int64
    private var isOutstanding = false

    init(_ connection: SQLiteConnection, round: Int64) throws(StoreError) {
        self.round = round
        statement = try connection.prepare("UPDATE state SET round = ?1")
    }

    /// To be called outside a transaction, after a commit failed. Where it does not succeed in a second, the next round
    /// begins with it.
    func settle() {
        isOutstanding = true
        var pause = Self.firstPause
        for attempt in 1...Self.tries {
            if (try? finish()) != nil { return }
            guard attempt < Self.tries else { return }
            usleep(pause)
            pause *= 2
        }
    }

    /// Settles what is outstanding.
    func finish() throws(StoreError) {
        guard isOutstanding else { return }
        round += 1
        statement.bind(round, at: 1)
        try statement.run()
        isOutstanding = false
    }
}
