package import JobModel

/// A deterministic in-memory store for the simulator and tests.
///
/// Undoing a round costs time in proportion to its changes. The store can hold a million jobs.
package final class InMemoryStore: JobStore {
    private var tables = StoreTables()
    /// The tables that a round with an unknown end would have left; nil after the next commit.
    private var unsettled: (tables: StoreTables, life: Int64)?
    private var faults = StoreFaults()
    private var nodes = Nodes(life: 1)
    /// The life of the next rounds, one of those begun.
    package var life: Int64 = 1
    /// The node of that life: jobs bound to others are not ready for it; nil for any.
    package var node: String?

    package init() {}

    package func round(_ body: (any JobTransaction) throws(StoreError) -> Void) -> RoundEnd {
        tables.begin()
        let transaction = InMemoryTransaction(tables, faults, nodes, life: life, node: node)
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
        // A round without writes has nothing to commit.
        guard let fault = faults.commit, tables.isChanged else {
            unsettled = nil
            nodes.committed(
                tables, life: life, hasHeard: transaction.hasAskedForNews, forgetsLost: transaction.forgetsLost)
            return .committed
        }
        faults.commit = nil
        unsettled = fault == .isUnknown ? (StoreTables(copying: tables), life) : nil
        tables.undo()
        switch fault {
        case .fails: return .undone(StoreError(.write, "The commit failed, as was asked for."))
        case .isUnknown: return .unknown(StoreError(.write, "The commit's end was unknown, as was asked for."))
        }
    }

    // MARK: - Nodes

    /// Begins a life; it hears of all later rounds of others.
    package func begin(life: Int64) { nodes.begin(life: life) }
    /// Ends a life, so that its runs are lost.
    package func end(life: Int64, wasStopped: Bool) { nodes.end(life: life, wasStopped: wasStopped) }
    package var living: Set<Int64> { nodes.living }
    /// Whether the last round changed something.
    package var isChanged: Bool { tables.isChanged }
    /// Whether the present life has heard of everything.
    package var isUpToDate: Bool { nodes.news(for: life, tables.rows) == nil }

    // MARK: - Faults

    package func failNextCommit() { faults.commit = .fails }
    /// Makes the next commit's result unknown, as after a failed fsync: it is lost unless the daemon is killed next.
    package func loseNextCommit() { faults.commit = .isUnknown }
    /// Makes the call of this number from now on fail, counted across rounds.
    package func failRead(after calls: Int) { faults.callsLeft = max(1, calls) }
    package var isFaulty: Bool { faults.commit != nil || faults.callsLeft != nil || !faults.unreadable.isEmpty }
    /// Clears the faults still to come.
    package func heal() { (faults.commit, faults.callsLeft) = (nil, nil) }

    /// Whether the last round had an unknown end, with no commit since.
    package var isUnsettled: Bool { unsettled != nil }
    /// Restores the round of unknown end, as after a kill.
    package func bringBack() {
        if let unsettled {
            tables = unsettled.tables
            nodes.committed(tables, life: unsettled.life, hasHeard: false, forgetsLost: false)
        }
        unsettled = nil
    }

    /// Sets what each transaction call runs.
    package func onCall(_ body: (() -> Void)?) { faults.onCall = body }
    /// Sets whether the store is full: inserting jobs fails, and all else works.
    package func setFull(_ isFull: Bool) { faults.isFull = isFull }
    /// Sets whether a job's row is damaged: it then counts as missing.
    package func setDamaged(_ job: JobID, _ isDamaged: Bool) {
        if isDamaged { faults.damaged.insert(job) } else { faults.damaged.remove(job) }
    }
    /// Sets whether every read of a job's row fails.
    package func setUnreadable(_ job: JobID, _ isUnreadable: Bool) {
        if isUnreadable { faults.unreadable.insert(job) } else { faults.unreadable.remove(job) }
    }

    // MARK: - Inspection

    package var rows: StoredRows { tables.rows }
    package func job(_ id: JobID) -> JobRow? { rows.job(id) }
    package var allJobs: some Sequence<JobRow> { rows.allJobs }
    package func list(of job: JobID) -> ListRow? { rows.list(of: job) }
    package var lists: [JobID: ListRow] { Dictionary(rows.allLists.map { ($0.job, $0) }) { $1 } }
    package var work: [Int64: WorkRow] { Dictionary(rows.allWork.map { ($0.id, $0) }) { $1 } }
    package var counts: [CountKey: CountValue] { rows.counts }
    package func isDamaged(_ job: JobID) -> Bool { faults.damaged.contains(job) }
    /// Returns the first ready jobs of an owner in a queue, without damaged ones.
    package func ready(queue: String, owner: UInt32, limit: Int) -> [ReadyRow] {
        let jobs = tables.jobs.ready[ReadyGroup(queue: Name(queue), owner: owner)]
        let damaged = faults.damaged
        let rows = jobs?.rows(
            after: nil, excluding: [], limit: node == nil ? limit.saturatingAdding(damaged.count) : .max)
        return Array(
            (rows ?? []).lazy.filter { [node, tables] row in
                !damaged.contains(row.position.id) && tables.rows.jobs[row.position.id]?.row.isReady(at: node) == true
            }.prefix(limit))
    }

    /// The number of searches for ready jobs.
    package var readySearches: Int { tables.readySearches }

    // Changes of the last round; empty if it was not committed.

    /// By id.
    package var changes: [RowChange<JobID, JobRow>] { tables.changedJobs }
    /// By id.
    package var workChanges: [RowChange<Int64, WorkRow>] { tables.changedWork }
    /// By key.
    package var scheduleChanges: [RowChange<ScheduleKey, ScheduleRow>] { tables.changedSchedules }
}
