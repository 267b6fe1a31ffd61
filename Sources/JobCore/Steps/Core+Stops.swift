import JobModel

/// Cancelling, deadlines, retrying and removing.
extension Core {
    /// Stops an unfinished job, at once or when its run has ended. Later work stops its descendants.
    func stop(_ old: JobRow, _ reason: JobRow.Stop, _ round: Round) throws(StoreError) {
        var row = old
        let wasWaiting = row.waiting
        let action = row.stop(reason, at: round.now)
        switch action {
        case .interrupt:
            try store(&row, was: old, round)
            if let live = running.run(of: row.id) { cancel(live) }
        case .none:
            // A `finally` link continues, followed only by other `finally` links. A restart must preserve that.
            if row != old { try store(&row, was: old, round) }
        case .enqueue, .finish, .run, .wait:
            // A list that a crash left half made is open while its job waits for a slot.
            if old.presentSource?.hasChildren == true { try closeList(of: old, round) }
            var mustClean = false
            if row.checkpointSize > 0 { mustClean = try removeParts(of: &row, links: 0...Int.max, round) != nil }
            if wasWaiting == .cleaning || mustClean, row.state == .queued { row.waiting = .cleaning }
            try store(&row, was: old, round)
            if row.state.isTerminal {
                try jobIsOver(row, isInside: wasWaiting != .gate, round)
            } else if wasWaiting == .gate {
                try passGate(row, round)
            }
        }
    }

    /// Returns a job if `caller` may see it.
    func find(_ id: JobID, _ caller: Caller, _ round: Round) throws(StoreError) -> JobRow? {
        guard let row = try round.transaction.job(id), caller.sees(row) else { return nil }
        return row
    }

    func cancel(_ id: JobID, _ request: RequestID, _ caller: Caller, _ round: Round) throws(StoreError) {
        guard let row = try find(id, caller, round) else { return fail(request, .noJob(id)) }
        guard !row.state.isTerminal else {
            let message = "Job \(id) already \(row.state.past); there is nothing to cancel."
            return fail(request, CoreError(.wrongState(row.state), message))
        }
        try stop(row, .cancelled, round)
        guard let present = try round.transaction.job(id), present.isEnding, let live = running.run(of: id),
            !live.endsLater
        else { return answer(request, .changed(id)) }
        // All but programs end at once, so the caller learns the outcome.
        pending.change(.begin(request, [.stop(id)], .answer(.changed(id))))
    }

    func retry(
        _ id: JobID, from point: RetryPoint, _ request: RequestID, _ caller: Caller, _ round: Round
    ) throws(StoreError) {
        guard let old = try find(id, caller, round) else { return fail(request, .noJob(id)) }
        guard old.parent == nil else {
            return fail(request, CoreError(.wrongState(old.state), "Job \(id) is a child; retry its parent."))
        }
        guard old.state == .failed || old.state == .cancelled else {
            let standing = old.state.isTerminal ? "already \(old.state.past)" : "is \(old.state.rawValue)"
            return fail(
                request,
                CoreError(
                    .wrongState(old.state), "Job \(id) \(standing); only failed or cancelled jobs can be retried."))
        }
        // The jobs that waited for its end get that end.
        if try round.transaction.hasWork(.tellDependents, of: id) {
            return fail(request, CoreError(.busy(retryAfter: 1), "Job \(id) has just ended; retry it in a moment."))
        }
        // A retried job waits like a submitted one.
        if let refusal = refusalWithoutRoom ?? refusalOfWaiting(old.owner) { return fail(request, refusal) }
        var row = old
        row.retry(from: point, at: round.now)
        let first = row.link
        let gone = row.blobs.filter { $0.link >= first && !$0.isOutput && $0.blob != row.carried?.blob }
        row.blobs.removeAll { gone.contains($0) }
        if old.children > 0 {
            row.waiting = .cleaning
            try add(
                WorkRow(kind: .removeChildren, job: id, owner: row.owner, position: Int64(first)), round)
        } else if try round.transaction.hasWork(.removeParts, of: id) {
            row.waiting = .cleaning
        }
        log(row, .retried, round)
        try store(&row, was: old, round)
        if row.key?.utf8.starts(with: ScheduleKey.jobKeyPrefix.utf8) == true { try scheduledJobReopened(id, round) }
        if !gone.isEmpty { pending.emit(.unlink(gone.map(\.blob))) }
        answer(request, .changed(id))
    }

    func remove(_ id: JobID, _ request: RequestID, _ caller: Caller, _ round: Round) throws(StoreError) {
        guard let row = try find(id, caller, round) else { return fail(request, .noJob(id)) }
        guard row.parent == nil else {
            return fail(
                request, CoreError(.wrongState(row.state), "Job \(id) is a child; it is removed with its parent."))
        }
        guard row.state.isTerminal else {
            return fail(
                request,
                CoreError(.wrongState(row.state), "Job \(id) is \(row.state.rawValue); cancel it before removing it."))
        }
        if let dependent = try dependent(of: row, round) {
            let message = "Job \(dependent) waits for job \(id); cancel it first, or remove job \(id) after it."
            return fail(request, CoreError(.wrongState(row.state), message))
        }
        guard let work = try dispose(row, round) else { return answer(request, .done) }
        pending.change(.begin(request, [.work(work)], .answer(.done)))
    }

    /// Removes a finished root job, at once if it has no children; returns any remaining work.
    func dispose(_ old: JobRow, _ round: Round) throws(StoreError) -> WorkID? {
        guard old.children > 0 else {
            return try delete(old, round)
        }
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
        if row.isSuspect { agenda.hasClearedSuspect = true }
        if try round.transaction.list(of: row.id) != nil {
            try round.transaction.closeList(of: row.id)
            pending.emit(.list(row.id, nil))
        }
        if !row.state.isTerminal { try settleDependencies(of: row, round) }
        if row.plan.hasList { try round.transaction.dropTemplates(of: row.id, fromLink: 0) }
        try round.transaction.delete(row.id)
        quotas.moved(from: old, to: nil)
        if !row.blobs.isEmpty { pending.emit(.unlink(row.blobs.map(\.blob))) }
        pending.end(row.id, toldTo: subscriptions.naming(row.id))
        if !row.state.isTerminal { pending.change(.happened(.stop(row.id))) }
        return parts
    }
}

extension JobState {
    /// Its verb in messages.
    fileprivate var past: String {
        switch self {
        case .succeeded: "succeeded"
        case .failed: "failed"
        case .cancelled: "was cancelled"
        case .scheduled, .queued, .running: rawValue
        }
    }
}
