import JobModel

/// The indexes for job queries; a job is only in the indexes that its row needs.
struct JobIndexes {
    private(set) var ready: [ReadyGroup: ReadyJobs] = [:]
    private(set) var due = SortedKeys<NumberedID>()
    private(set) var wallDue = SortedKeys<NumberedID>()
    private(set) var deadlines = SortedKeys<NumberedID>()
    /// By the life of their runs.
    private(set) var runs = SortedKeys<NumberedID>()
    private(set) var suspects = SortedKeys<JobID>()
    private(set) var ends = SortedKeys<NumberedID>()
    private(set) var endsByOwner = SortedKeys<OwnedEnd>()
    private(set) var children = SortedKeys<ChildKey>()
    private(set) var unfinishedChildren = SortedKeys<ChildKey>()
    private(set) var gatedChildren = SortedKeys<ChildKey>()
    private(set) var keys: [OwnedKey: JobID] = [:]

    /// Updates the indexes for a change of one job; nil stands for a missing job.
    mutating func change(from old: JobEntry?, to new: JobEntry?) {
        let (before, after) = (old?.row, new?.row)
        changeReady(from: before, to: after)
        due.change(from: before?.dueKey, to: after?.dueKey)
        wallDue.change(from: before?.wallDueKey, to: after?.wallDueKey)
        deadlines.change(from: before?.deadlineKey, to: after?.deadlineKey)
        runs.change(from: before?.runKey, to: after?.runKey)
        suspects.change(from: before?.suspectKey, to: after?.suspectKey)
        if before?.endKey != after?.endKey {
            ends.change(from: before?.endKey?.end, to: after?.endKey?.end)
            endsByOwner.change(from: before?.endKey, to: after?.endKey)
        }
        children.change(from: before?.childKey, to: after?.childKey)
        unfinishedChildren.change(from: before?.unfinishedChildKey, to: after?.unfinishedChildKey)
        gatedChildren.change(from: before?.gatedChildKey, to: after?.gatedChildKey)
        guard old?.heldKey != new?.heldKey else { return }
        if let key = old?.heldKey { keys[key] = nil }
        if let new, let key = new.heldKey { keys[key] = new.row.id }
    }

    private mutating func changeReady(from old: JobRow?, to new: JobRow?) {
        let before = old.flatMap { $0.isReady ? $0 : nil }
        let after = new.flatMap { $0.isReady ? $0 : nil }
        if before?.readyGroup == after?.readyGroup, before?.readyRow == after?.readyRow { return }
        if let before {
            let group = before.readyGroup
            ready[group]?.remove(before.readyRow)
            if ready[group]?.isEmpty == true { ready[group] = nil }
        }
        if let after { ready[after.readyGroup, default: ReadyJobs()].insert(after.readyRow) }
    }
}

extension SortedRows where Value == Void {
    mutating func change(from old: Key?, to new: Key?) {
        if old == new { return }
        if let old { remove(old) }
        if let new { insert(new) }
    }
}

extension JobRow {
    fileprivate var readyGroup: ReadyGroup { ReadyGroup(queue: Name(queue), owner: owner) }
    fileprivate var readyRow: ReadyRow { ReadyRow(position: position, host: host) }

    private var canBeDue: Bool { !state.isTerminal && !isRemoving }

    fileprivate var dueKey: NumberedID? {
        canBeDue ? due.map { NumberedID(number: $0, id: id) } : nil
    }

    fileprivate var wallDueKey: NumberedID? {
        guard state == .scheduled, !isRemoving, due == nil else { return nil }
        return notBefore.map { NumberedID(number: $0.milliseconds, id: id) }
    }

    fileprivate var deadlineKey: NumberedID? {
        canBeDue ? deadline.map { NumberedID(number: $0, id: id) } : nil
    }

    fileprivate var runKey: NumberedID? { run.map { NumberedID(number: $0.life, id: id) } }

    fileprivate var suspectKey: JobID? { crashes > 0 && !state.isTerminal ? id : nil }

    fileprivate var endKey: OwnedEnd? {
        guard state.isTerminal, parent == nil, !isRemoving, !hasDependents, let finishedAt else { return nil }
        return OwnedEnd(owner: owner, end: NumberedID(number: finishedAt.milliseconds, id: id))
    }

    fileprivate var childKey: ChildKey? {
        parent.map { ChildKey(parent: $0.job, list: $0.list, id: id) }
    }

    fileprivate var unfinishedChildKey: ChildKey? { state.isTerminal ? nil : childKey }

    /// A child with a delay may wait for its gate and for its time at once.
    fileprivate var gatedChildKey: ChildKey? { waiting == .gate ? unfinishedChildKey : nil }
}
