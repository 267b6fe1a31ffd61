package import JobModel

/// A deterministic in-memory store for the simulator and tests.
///
/// A round works on a copy of the tables, which share what does not change.
package final class InMemoryStore: JobStore {
    private var tables = StoreTables()
    /// The rows before the last committed round.
    private var before = StoredRows()
    /// The round under way.
    private var open: InMemoryTransaction?
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
        open = transaction
        defer { open = nil }
        do {
            try body(transaction)
            try transaction.end()
        } catch {
            transaction.isOpen = false
            if transaction.callsLeft == 0 { faults.callsLeft = nil }
            return .undone(error)
        }
        faults.callsLeft = transaction.callsLeft
        // A round without writes has nothing to commit.
        guard let fault = faults.commit, transaction.tables.isChanged else {
            unsettled = nil
            commit(transaction.tables, life, transaction.hasAskedForNews, transaction.forgetsLost)
            return .committed
        }
        faults.commit = nil
        unsettled = fault == .isUnknown ? (transaction.tables, life) : nil
        switch fault {
        case .fails: return .undone(StoreError(.write, "The commit failed, as was asked for."))
        case .isUnknown: return .unknown(StoreError(.write, "The commit's end was unknown, as was asked for."))
        }
    }

    private func commit(_ new: StoreTables, _ life: Int64, _ hasHeard: Bool, _ forgetsLost: Bool) {
        (before, tables, open) = (tables.rows, new, nil)
        nodes.committed(life: life, hasHeard: hasHeard, forgetsLost: forgetsLost) {
            guard new.isChanged else { return nil }
            let news = changes.filter { change in
                guard let before = change.before, let after = change.after else { return true }
                return after.isNews(after: before)
            }
            return Nodes.Record(
                life: life, jobs: news.map(\.id), work: workChanges.filter { $0.after == nil }.map(\.id),
                counts: Array(new.touched.counts), hasQueues: new.touched.hasQueues,
                hasSchedules: !scheduleChanges.isEmpty)
        }
    }

    // MARK: - Nodes

    /// Begins a life; it hears of all later rounds of others.
    package func begin(life: Int64, node: String? = nil) { nodes.begin(life: life, node: node) }
    /// Ends a life, so that its runs are lost.
    package func end(life: Int64, wasStopped: Bool) { nodes.end(life: life, wasStopped: wasStopped) }
    /// Sets how many rounds of others one round hears of at most.
    package func hearAtMost(_ rounds: Int) { nodes.mostHeard = rounds }
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
        if let unsettled { commit(unsettled.tables, unsettled.life, false, false) }
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

    // Changes of the round under way or the last one, by key, without rows that it made and deleted; empty if it was
    // not committed.

    package var changes: [RowChange<JobID, JobRow>] { changes(\.jobs) { $0.jobs[$1]?.row } }
    package var workChanges: [RowChange<Int64, WorkRow>] { changes(\.work) { $0.work[$1] } }
    package var scheduleChanges: [RowChange<ScheduleKey, Schedule>] { changes(\.schedules) { $0.schedules[$1] } }

    private func changes<Key: Comparable, Row>(
        _ keys: KeyPath<StoreTables.Touched, Set<Key>>, _ row: (StoredRows, Key) -> Row?
    ) -> [RowChange<Key, Row>] {
        let now = open?.tables ?? tables
        let earlier = open == nil ? before : tables.rows
        return now.touched[keyPath: keys].sorted().compactMap { key in
            let (old, new) = (row(earlier, key), row(now.rows, key))
            return old == nil && new == nil ? nil : RowChange(id: key, before: old, after: new)
        }
    }
}

/// A row before and after a round; nil if it did not exist.
package struct RowChange<Key, Row> {
    package let id: Key
    package let before: Row?
    package let after: Row?
}
