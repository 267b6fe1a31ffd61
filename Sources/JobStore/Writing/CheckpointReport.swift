import JobModel
import GRDB
import Synchronization

/// Tells that the log cannot be written into the database: once, and once more when it can again.
///
/// Nothing is lost while that is so, as the log is whole, but it grows with every commit.
final class CheckpointReport: Sendable {
    private let isFailing = Mutex(false)
    private let database: String
    private let tell: @Sendable (StoreError?) -> Void

    /// `tell` is told the reason, or nil where it works again.
    init(database: String, _ tell: @escaping @Sendable (StoreError?) -> Void) {
        self.database = database
        self.tell = tell
    }

    /// Runs `checkpoint`, which may fail; another one at the same time is no failure.
    func run(_ checkpoint: () throws -> Void) {
        do {
            try checkpoint()
        } catch let error as DatabaseError where error.resultCode == .SQLITE_BUSY {
            return
        } catch {
            if change(to: true) { tell(StoreError(.write, error, database: database)) }
            return
        }
        if change(to: false) { tell(nil) }
    }

    private func change(to now: Bool) -> Bool {
        isFailing.withLock { isFailing in
            defer { isFailing = now }
            return isFailing != now
        }
    }
}
