import InMemoryStore
import JobCore
import JobModel

/// A store as a daemon sees it: what is durable, what is on its way there, and what is wrong with it at the moment.
struct SimulatedStore {
    enum Health {
        case well
        /// Each write and read takes seconds.
        case slow
        /// Each read does.
        case readsAreSlow
        /// No group of writes is kept.
        case writesFail
        /// A group now and then is not kept.
        case someWritesFail
        /// The same, and each group takes a good part of a second.
        case stutters
        /// Only what removes is kept.
        case full
        case readsFail
    }

    var tables = MemoryTables()
    var health = Health.well
    /// When the store was last unwell, in elapsed nanoseconds.
    var lastUnwell: Int64 = -1
    /// Writes that are in no group yet.
    var waiting: [(WriteID, StoreWrite)] = []
    /// The group that an fsync is under way for.
    var group: [(WriteID, StoreWrite)] = []
    /// Reads without an answer.
    var reads = 0
    /// Writes that are durable, or failed, without the core knowing it.
    var unanswered = 0
    /// Events `resume` that are on their way.
    var yields = 0
    /// Specs of schedules that are being checked.
    var checks = 0
    /// When the answers to the last group arrive, in elapsed nanoseconds.
    var answersAt: Int64 = 0
    /// The most writes in one group.
    static let largestGroup = 256

    /// Whether the core waits for nothing of the store, nor of others that work for it.
    var isQuiet: Bool {
        waiting.isEmpty && group.isEmpty && reads == 0 && unanswered == 0 && yields == 0 && checks == 0
    }

    mutating func mark(_ job: JobID, isWorking: Bool) {
        tables.mark(job, isWorking: isWorking)
    }

    mutating func clearMarks() { tables.clearMarks() }

    func contains(_ job: JobID) -> Bool {
        if case .jobs(let rows) = tables.read(.jobs([job])) { !rows.isEmpty } else { false }
    }

    /// Forgets what a daemon that is gone was waiting for.
    mutating func forget() {
        waiting = []
        group = []
        reads = 0
        unanswered = 0
        yields = 0
        checks = 0
    }
}

extension StoreWrite {
    /// Whether it works without room on the disk.
    var frees: Bool {
        switch self {
        case .remove, .removeChildren, .purge, .purgeOldest: true
        default: false
        }
    }
}
