package import JobModel

/// A store in memory, a round at a time, with faults that a simulator sets.
///
/// Each change leaves in an undo log what was there before, so that a round that is not committed costs what it changed.
package final class InMemoryRoundStore: RoundStore {
    /// A row that the last committed round changed.
    package struct Change {
        package let id: JobID
        package let before: JobRow?
        package let after: JobRow?
    }

    private enum Fault {
        case commit
        case lostCommit
        case read(left: Int)
    }

    private let tables = Tables()
    private var fault: Fault?
    /// The jobs that the last committed round changed, by id.
    package private(set) var changes: [Change] = []

    package init() {}

    package func round(_ body: (any JobTransaction) throws(StoreError) -> Void) -> RoundEnd {
        let transaction = Transaction(tables)
        if case .read(let left) = fault { transaction.readsLeft = left }
        do throws(StoreError) {
            try body(transaction)
        } catch {
            fault = nil
            tables.undo()
            transaction.end()
            return .undone(error)
        }
        transaction.end()
        switch fault {
        case .commit where tables.hasChanges, .lostCommit where tables.hasChanges:
            let isLost = if case .lostCommit = fault { true } else { false }
            fault = nil
            tables.undo()
            let error = StoreError(.write, "The disk is full.")
            return isLost ? .unknown(error) : .undone(error)
        case .read(let left): fault = .read(left: max(1, min(left, transaction.readsLeft ?? left)))
        default: break
        }
        if tables.hasChanges { changes = tables.commit() } else { changes = [] }
        return .committed
    }

    // MARK: - Faults

    package func failNextCommit() { fault = .commit }
    /// The next commit's fate is unknown at first, and nothing of it happened.
    package func loseNextCommit() { fault = .lostCommit }
    /// The call of this number, counted over rounds, fails.
    package func failRead(after calls: Int) { fault = .read(left: calls) }
    package func heal() { fault = nil }
    package var isFaulty: Bool { fault != nil }

    /// The row of a job is damaged, or is not any more: it counts as none.
    package func setUnreadable(_ job: JobID, _ isUnreadable: Bool) {
        if isUnreadable { tables.unreadable.insert(job) } else { tables.unreadable.remove(job) }
    }

    // MARK: - Looking

    package func job(_ id: JobID) -> JobRow? { tables.jobs[id] }
    package var allJobs: some Sequence<JobRow> { tables.jobs.values }
    package func list(of job: JobID) -> ListRow? { tables.lists[job] }
    package var lists: [JobID: ListRow] { tables.lists }
    package var work: [Int64: WorkRow] { tables.work }
    package var counts: [CountKey: CountValue] { tables.counts }
    package var schedules: [ScheduleKey: ScheduleRow] { tables.schedules }
    /// Rows beside the jobs' own that belong to no job: documents, keys, templates, checkpoints.
    package var orphans: Int { tables.orphans }
}
