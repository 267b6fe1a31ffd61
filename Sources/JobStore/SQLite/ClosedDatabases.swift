import GRDB
import Synchronization

/// The databases that were open for a moment only, at most two for each start of a store.
///
/// What GRDB keeps with a queue is let go by libdispatch on the pool that all share, which looks after its threads every
/// second from its first use on. A daemon that has nothing to do is to sleep, so they stay, closed, until it ends.
enum ClosedDatabases {
    private static let kept = Mutex<[DatabaseQueue]>([])

    static func keep(_ queue: DatabaseQueue) {
        kept.withLock { $0.append(queue) }
    }
}
