import JobModel

/// A row before and after a round; nil where there was none.
package struct RowChange<Key, Row> {
    package let id: Key
    package let before: Row?
    package let after: Row?
}

/// What rows of one table were at the start of a round, of those that it has changed.
struct Journal<Key: Hashable & Sendable, Row: Sendable> {
    private(set) var before: [Key: Row?] = [:]

    /// To be called before a row is changed; `row` is what it is now.
    mutating func note(_ key: Key, _ row: Row?) {
        if before.index(forKey: key) == nil { before.updateValue(row, forKey: key) }
    }

}

extension Journal where Key: Comparable {
    /// What became of these rows, by key. A row that was made and dropped in the round is left out.
    func changes<Shown>(_ now: (Key) -> Row?, _ show: (Row) -> Shown) -> [RowChange<Key, Shown>] {
        before.keys.sorted().compactMap { key in
            let old = before[key] ?? nil
            let new = now(key)
            return old == nil && new == nil ? nil : RowChange(id: key, before: old.map(show), after: new.map(show))
        }
    }
}

/// The journals of all tables, for one round.
struct Journals {
    var jobs = Journal<JobID, JobEntry>()
    var lists = Journal<JobID, ListRow>()
    var templates = Journal<JobPart, StoredRows.Template>()
    var checkpoints = Journal<JobPart, [UInt8]>()
    var downloads = Journal<Name, StoredRows.Download>()
    var schedules = Journal<ScheduleKey, ScheduleRow>()
    var queues = Journal<Name, QueueSettings>()
    var work = Journal<Int64, WorkRow>()
    var counts = Journal<CountKey, CountValue>()
    /// As they were at the start of the round.
    let numbers: StoredRows.Numbers

    var isEmpty: Bool {
        jobs.before.isEmpty && lists.before.isEmpty && templates.before.isEmpty && checkpoints.before.isEmpty
            && downloads.before.isEmpty && schedules.before.isEmpty
            && queues.before.isEmpty && work.before.isEmpty && counts.before.isEmpty
    }
}
