import JobModel

/// Jobs that wait for other jobs.
///
/// A row of `dependencies` keeps a job that another waits for, or will wait for as its spec says, until that one ends.
extension Core {
    /// The most rows read in search of a cycle. A longer cycle waits until it is cancelled.
    private static let mostVisited = 1000
    /// The most dependencies dropped in the round that ends their job.
    private static let droppedAtOnce = 8

    // MARK: - Waiting

    /// Returns a job that an owner's jobs can wait for.
    func target(_ id: JobID, of owner: UInt32, _ round: Round) throws(StoreError) -> JobRow? {
        guard let row = try round.transaction.job(id), row.owner == owner,
            try !(ancestors(of: row, round).last ?? row).isRemoving
        else { return nil }
        return row
    }

    /// Keeps a job, and its root, with which it would be removed, until its dependent has ended.
    func depend(_ dependent: JobID, on target: JobID, _ round: Round) throws(StoreError) {
        guard let row = try round.transaction.job(target) else { return }
        for old in try [row] + ancestors(of: row, round).suffix(1) {
            try round.transaction.addDependency(of: dependent, on: old.id)
            if !old.hasDependents { try change(old, round) { $0.hasDependents = true } }
        }
    }

    /// Lets the job of a run wait for another without a slot; if that has ended, the link ends too.
    func wait(for id: JobID, _ old: JobRow, _ live: LiveRun, _ round: Round) throws(StoreError) {
        // The next daemon repeats the step.
        guard phase == .serving else { return }
        guard let target = try target(id, of: old.owner, round) else {
            return try runEnded(old, live, RunEnd(.failure(JobError(.invalid, ProtocolError.noJob(id).message))), round)
        }
        if let end = target.awaitedEnd, end.values.isEmpty { return try runEnded(old, live, end, round) }
        if try isWaiting(target, for: old, round) {
            let error = JobError(
                .invalid, "Job \(id) is, or waits for, job \(old.id), so neither would end; wait for another job.")
            return try runEnded(old, live, RunEnd(.failure(error)), round)
        }
        release(live)
        try depend(old.id, on: id, round)
        let row = try change(old, round) { row in
            row.crashes = 0
            row.awaits = id
            row.wait(for: .job, until: row.step?.timeout.map { round.now.steady(after: $0) })
        }
        if target.state.isTerminal { try adopt(row, round) }
    }

    /// Returns whether `target` cannot end before `row` has: because it is that job, an ancestor of it, behind it at the
    /// gate of its list, or waits for a job of which this is true.
    private func isWaiting(_ target: JobRow, for row: JobRow, _ round: Round) throws(StoreError) -> Bool {
        var blocked = [row]
        var ids: Set<JobID> = [row.id]
        var lists: Set<Int64> = []
        var left = Self.mostVisited
        while let present = blocked.popLast(), left > 0 {
            if present.id == target.id { return true }
            var next: [JobRow] = []
            if let parent = present.parent {
                if let above = try round.transaction.job(parent.job) { next.append(above) }
                if lists.insert(parent.list).inserted {
                    next += try round.transaction.unfinishedChildren(
                        of: parent.job, list: parent.list, areGated: true, after: 0, limit: left)
                }
            }
            let dependents = try round.transaction.dependents(of: present.id, after: 0, limit: left)
            for id in dependents {
                if let row = try round.transaction.job(id), row.awaits == present.id { next.append(row) }
            }
            left -= next.count + dependents.count
            for row in next where ids.insert(row.id).inserted { blocked.append(row) }
        }
        return false
    }

    /// Ends the link of a job with the outcome of the ended job that it waits for; files are linked first.
    func adopt(_ old: JobRow, _ round: Round) throws(StoreError) {
        let target = try old.awaits.map { (id) throws(StoreError) in try round.transaction.job(id) } ?? nil
        guard let target, let end = target.awaitedEnd else {
            let error = JobError(.invalid, "Job \(old.awaits ?? 0) was removed before it had ended; submit it again.")
            return try linkEnded(old, was: old, .failure(error), keepingSlot: false, round)
        }
        if let refusal = try refusal(toKeep: end, old, round) {
            return try linkEnded(old, was: old, .failure(refusal), keepingSlot: false, round)
        }
        guard case .success(let value) = end.outcome, !end.values.isEmpty else {
            return try linkEnded(old, was: old, end.outcome, keepingSlot: false, round)
        }
        try begin(.adopt(value, body: end.body), old, round)
    }

    // MARK: - Ends

    /// Handles the end or removal of a job: later work tells its dependents, and its own dependencies are dropped.
    func settleDependencies(of row: JobRow, _ round: Round) throws(StoreError) {
        if row.hasDependents { try add(WorkRow(kind: .tellDependents, job: row.id, owner: row.owner), round) }
        // A piece of work takes a round, so few are dropped at once.
        guard row.plan.mayDepend, try !drop(dependenciesOf: row.id, atMost: Self.droppedAtOnce, round) else { return }
        try add(WorkRow(kind: .dropDependencies, job: row.id, owner: row.owner), round)
    }

    func tellDependents(_ work: WorkRow, atMost limit: Int, _ round: Round) throws(StoreError) {
        let ids = try round.transaction.dependents(of: work.job, after: work.position, limit: limit)
        for id in ids {
            guard let row = try round.transaction.job(id), row.awaits == work.job, row.run == nil else { continue }
            try adopt(row, round)
        }
        try goOn(work, after: ids.count == limit ? ids.last : nil, round)
    }

    func dropDependencies(_ work: WorkRow, atMost limit: Int, _ round: Round) throws(StoreError) {
        // A job that was retried meanwhile needs them again.
        if let row = try round.transaction.job(work.job), !row.state.isTerminal { return try end(work, round) }
        if try drop(dependenciesOf: work.job, atMost: limit, round) { try end(work, round) }
    }

    /// Drops dependencies of a job, and lets the jobs go that no other needs; returns false if some may be left.
    private func drop(dependenciesOf job: JobID, atMost limit: Int, _ round: Round) throws(StoreError) -> Bool {
        let targets = try round.transaction.dependencies(of: job, limit: limit)
        for target in targets {
            try round.transaction.removeDependency(of: job, on: target)
            guard let old = try round.transaction.job(target), old.hasDependents,
                try round.transaction.dependents(of: target, after: 0, limit: 1).isEmpty
            else { continue }
            let row = try change(old, round) { $0.hasDependents = false }
            // Retention passed over it.
            if row.state.isTerminal, row.parent == nil { noteEnd(of: row, round) }
        }
        return targets.count < limit
    }

    /// Returns a job that depends on this one, and that `fits`.
    func dependent(
        of row: JobRow, _ round: Round, where fits: (JobRow) throws(StoreError) -> Bool
    ) throws(StoreError) -> JobID? {
        guard row.hasDependents else { return nil }
        for id in try round.transaction.dependents(of: row.id, after: 0, limit: Self.mostVisited) {
            if let dependent = try round.transaction.job(id), try fits(dependent) { return id }
        }
        return nil
    }
}

extension JobRow {
    /// The outcome for a job that waits for this one, with the files that it names; nil before its end.
    fileprivate var awaitedEnd: RunEnd? {
        guard state.isTerminal else { return nil }
        if state == .succeeded, case .success = carried, let carried { return RunEnd(carried, body: resultBody) }
        return RunEnd(.failure((carried?.error ?? Stop.cancelled.error).passedOn(by: id)))
    }
}
