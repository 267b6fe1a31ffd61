import JobModel

/// Cancelling, deadlines and removing.
extension Core {
    /// The deadline of a job. A child without one of its own has that of a job above, which may have been extended since.
    func deadline(of row: JobRow, _ round: Round) throws(StoreError) -> SteadyTime? {
        guard row.isOverdue(at: round.now), row.plan.deadline == nil,
            let above = try ancestors(of: row, round).first(where: { $0.plan.deadline != nil || $0.parent == nil }),
            above.stop == nil
        else { return row.deadline }
        return above.deadline
    }

    /// Stops an unfinished job, at once or when its run has ended. Later work stops its descendants.
    func stop(_ old: JobRow, _ reason: JobRow.Stop, _ round: Round) throws(StoreError) {
        var row = old
        row.stop(reason, at: round.now)
        guard row != old else { return }
        if row.state == .running {
            try store(&row, was: old, round)
            // A `finally` link continues, followed only by other `finally` links. A restart must preserve that.
            if row.isEnding, let live = running.run(of: row.id) { cancel(live) }
            return
        }
        // A list that a crash left half made is open while its job waits for a slot.
        if old.presentSource?.hasChildren == true { try closeList(of: old, round) }
        let mustClean = row.checkpointSize > 0 ? try removeParts(of: &row, links: 0...Int.max, round) != nil : false
        if old.waiting == .cleaning || mustClean, row.state == .queued { row.waiting = .cleaning }
        try store(&row, was: old, round)
        if row.state.isTerminal {
            pending.emit(.endedWithoutRun(row.id))
            try jobIsOver(row, isInside: old.waiting != .gate, round)
        } else if old.waiting == .gate {
            try passGate(row, round)
        }
    }

    /// Removes a finished root job, at once if it has no children; returns any remaining work.
    func dispose(_ old: JobRow, _ round: Round) throws(StoreError) -> WorkID? {
        if old.children == 0 { return try delete(old, round) }
        var row = old
        row.isRemoving = true
        try round.transaction.releaseKey(of: row.id)
        try store(&row, was: old, round)
        pending.end(row.id, toldTo: subscriptions.naming(row.id))
        return try add(WorkRow(kind: .removeTree, job: row.id, owner: row.owner), round).id
    }

    /// Deletes a job without children; returns any removal of its transfers' partial files.
    func delete(_ old: JobRow, _ round: Round) throws(StoreError) -> WorkID? {
        var row = old
        let parts = row.checkpointSize > 0 ? try removeParts(of: &row, links: 0...Int.max, round) : nil
        if let live = running.run(of: row.id) { cancel(live) }
        if row.isReady { scheduler.remove(row) }
        if !old.state.isTerminal { try tellEnd(of: row, round) }
        if row.isSuspect { agenda.hasClearedSuspect = true }
        if try round.transaction.list(of: row.id) != nil {
            try round.transaction.closeList(of: row.id)
            pending.emit(.list(row.id, nil))
        }
        if !row.state.isTerminal { try settleDependencies(of: row, round) }
        if row.plan.hasList { try round.transaction.dropTemplates(of: row.id, fromLink: 0) }
        try round.transaction.delete(row.id)
        quotas.remove(old)
        if !row.blobs.isEmpty { pending.emit(.unlink(row.blobs.map(\.blob))) }
        pending.end(row.id, toldTo: subscriptions.naming(row.id))
        if !row.state.isTerminal { pending.waits.append(.happened(.stop(row.id))) }
        return parts
    }

    /// Tells the subscribers of a job that is deleted before it has ended, as its parent was removed or retried, that it is
    /// cancelled.
    private func tellEnd(of old: JobRow, _ round: Round) throws(StoreError) {
        var row = old
        (row.state, row.carried) = (.cancelled, .failure(JobRow.Stop.cancelled.error))
        row.finishedAt = round.now.wall
        row.version += 1
        try tell(row, round)
    }
}
