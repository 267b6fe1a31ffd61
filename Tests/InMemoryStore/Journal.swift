import JobModel

/// A row before and after a round; nil if it did not exist.
package struct RowChange<Key, Row> {
    package let id: Key
    package let before: Row?
    package let after: Row?
}

/// The changed rows of one table as they were before the round.
struct Journal<Key: Hashable & Sendable, Row: Sendable> {
    private(set) var before: [Key: Row?] = [:]

    /// Records a row before its change; `row` is the current value.
    mutating func note(_ key: Key, _ row: Row?) {
        if before.index(forKey: key) == nil { before.updateValue(row, forKey: key) }
    }
}

extension Journal where Key: Comparable {
    /// Returns the row changes by key, without rows created and deleted in the round.
    func changes<Shown>(_ now: (Key) -> Row?, _ show: (Row) -> Shown) -> [RowChange<Key, Shown>] {
        before.keys.sorted().compactMap { key in
            let old = before[key] ?? nil
            let new = now(key)
            return old == nil && new == nil ? nil : RowChange(id: key, before: old.map(show), after: new.map(show))
        }
    }
}

/// The journals of all tables for one round.
struct Journals {
    var jobs = Journal<JobID, JobEntry>()
    var lists = Journal<JobID, ListRow>()
    var templates = Journal<JobPart, StoredRows.Template>()
    var checkpoints = Journal<JobPart, [UInt8]>()
    /// By target and job.
    var dependents = Journal<NumberedID, Bool>()
    var downloads = Journal<Name, [UInt8]>()
    var schedules = Journal<ScheduleKey, ScheduleRow>()
    var specs = Journal<ScheduleKey, [UInt8]>()
    var queues = Journal<Name, QueueOverrides>()
    var work = Journal<Int64, WorkRow>()
    var counts = Journal<CountKey, CountValue>()
    /// The numbers at the start of the round.
    let numbers: StoredRows.Numbers

    var isEmpty: Bool {
        jobs.before.isEmpty && lists.before.isEmpty && templates.before.isEmpty && checkpoints.before.isEmpty
            && dependents.before.isEmpty && downloads.before.isEmpty && schedules.before.isEmpty && specs.before.isEmpty
            && queues.before.isEmpty && work.before.isEmpty && counts.before.isEmpty
    }
}
