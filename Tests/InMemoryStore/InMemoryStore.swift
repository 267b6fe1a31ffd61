package import JobModel

/// A store of rounds in memory, for the simulator and for tests: the same rounds give the same answers, always.
///
/// A round that is undone costs what it changed. A million jobs fit in.
package final class InMemoryStore: JobStore {
    private var tables = StoreTables()
    /// What a round of an unknown end would have left; nil once another round is committed.
    private var unsettled: StoreTables?
    private var faults = StoreFaults()

    package init() {}

    package func round(_ body: (any JobTransaction) throws(StoreError) -> Void) -> RoundEnd {
        tables.begin()
        let transaction = InMemoryTransaction(tables, faults)
        do {
            try body(transaction)
            try transaction.end()
        } catch {
            transaction.isOpen = false
            if transaction.callsLeft == 0 { faults.callsLeft = nil }
            tables.undo()
            return .undone(error)
        }
        faults.callsLeft = transaction.callsLeft
        // Where nothing was written, there is nothing to commit.
        guard let fault = faults.commit, tables.isChanged else {
            unsettled = nil
            return .committed
        }
        faults.commit = nil
        unsettled = fault == .isUnknown ? StoreTables(copying: tables) : nil
        tables.undo()
        switch fault {
        case .fails: return .undone(StoreError(.write, "The commit failed, as was asked for."))
        case .isUnknown: return .unknown(StoreError(.write, "The commit's end was unknown, as was asked for."))
        }
    }

    // MARK: - Faults

    package func failNextCommit() { faults.commit = .fails }
    /// The next commit's fate is unknown, as after a failed fsync: nothing of it happened, unless the daemon is killed next.
    package func loseNextCommit() { faults.commit = .isUnknown }
    /// The call of this number from now on fails, counted over rounds.
    package func failRead(after calls: Int) { faults.callsLeft = max(1, calls) }
    package var isFaulty: Bool { faults.commit != nil || faults.callsLeft != nil || !faults.unreadable.isEmpty }
    /// Forgets the faults that are to come.
    package func heal() { (faults.commit, faults.callsLeft) = (nil, nil) }

    /// Whether the last round had an unknown end, and no other has been committed since.
    package var isUnsettled: Bool { unsettled != nil }
    /// The daemon is killed, and the round of the unknown end turns out to be there; it is the last one then.
    package func bringBack() {
        if let unsettled { tables = unsettled }
        unsettled = nil
    }

    /// There is no room, or there is again: jobs cannot be inserted, and all else works.
    package func setFull(_ isFull: Bool) { faults.isFull = isFull }
    /// The row of a job is damaged, or is not any more: it counts as none.
    package func setDamaged(_ job: JobID, _ isDamaged: Bool) {
        if isDamaged { faults.damaged.insert(job) } else { faults.damaged.remove(job) }
    }
    /// The disk does not give back the row of a job, or does again: reading it fails, each time.
    package func setUnreadable(_ job: JobID, _ isUnreadable: Bool) {
        if isUnreadable { faults.unreadable.insert(job) } else { faults.unreadable.remove(job) }
    }

    // MARK: - Looking

    /// All that is stored.
    package var rows: StoredRows { tables.rows }
    package func job(_ id: JobID) -> JobRow? { rows.job(id) }
    package var allJobs: some Sequence<JobRow> { rows.allJobs }
    package func list(of job: JobID) -> ListRow? { rows.list(of: job) }
    package var lists: [JobID: ListRow] { Dictionary(rows.allLists.map { ($0.job, $0) }) { $1 } }
    package var work: [Int64: WorkRow] { Dictionary(rows.allWork.map { ($0.id, $0) }) { $1 } }
    package var counts: [CountKey: CountValue] { rows.counts }
    package func isDamaged(_ job: JobID) -> Bool { faults.damaged.contains(job) }
    /// The first ready jobs of an owner in a queue, without damaged ones.
    package func ready(queue: String, owner: UInt32, limit: Int) -> [ReadyRow] {
        let jobs = tables.jobs.ready[ReadyGroup(queue: Name(queue), owner: owner)]
        let damaged = faults.damaged
        let rows = jobs?.rows(after: nil, excluding: [], limit: limit.saturatingAdding(damaged.count)) ?? []
        return Array(rows.lazy.filter { !damaged.contains($0.position.id) }.prefix(limit))
    }

    /// How often ready jobs were looked for.
    package var readySearches: Int { tables.readySearches }

    // What the last round changed: nothing where it was not committed.

    /// By id.
    package var changes: [RowChange<JobID, JobRow>] { tables.changedJobs }
    /// By job.
    package var listChanges: [RowChange<JobID, ListRow>] { tables.changedLists }
    /// By id.
    package var workChanges: [RowChange<Int64, WorkRow>] { tables.changedWork }
    /// By key.
    package var scheduleChanges: [RowChange<ScheduleKey, ScheduleRow>] { tables.changedSchedules }
}
