import JobModel

/// Due times and leftover work.
extension Core {
    /// Due rows per query.
    private static let dueAtOnce = 256
    /// Rows changed per piece of work.
    private static let pieceRows = 128
    /// Finished jobs purged at once.
    private static let purgedAtOnce = 64

    func tick(_ round: Round) throws(StoreError) {
        guard phase == .serving else { return }
        agenda.mustTickAgain = false
        try runDue(round)
        try runSchedules(round)
        try work(round)
        try purge(round)
    }

    // MARK: - Times

    private func runDue(_ round: Round) throws(StoreError) {
        guard agenda.isDue(at: round.now) else { return }
        let rows = try round.transaction.due(
            steady: round.now.steady, wall: round.now.wall, limit: Self.dueAtOnce)
        // Handling one row may have changed another.
        for row in rows {
            if let present = try round.transaction.job(row.id), !present.state.isTerminal {
                try fellDue(present, round)
            }
        }
        if rows.count == Self.dueAtOnce { return agenda.mustTickAgain = true }
        // If none is left, only damaged rows are due.
        try lookAhead(after: rows.isEmpty ? (round.now.steady, round.now.wall) : nil, round)
    }

    /// Reads the next due times from the store, or those after times up to which all is handled.
    func lookAhead(after handled: (SteadyTime, Timestamp)? = nil, _ round: Round) throws(StoreError) {
        let (steady, wall) = handled ?? (.min, Timestamp(milliseconds: .min))
        agenda.due = try round.transaction.dueTimes(after: steady, wall)
        // Without room, it would find due schedules at each tick and leave them.
        if experience.shortage == nil, let time = agenda.due.schedules { agenda.note(time) }
        agenda.nextExpiry = agenda.due.firstEnd.map { $0.adding(seconds: settings.retentionAge) }
    }

    private func fellDue(_ old: JobRow, _ round: Round) throws(StoreError) {
        if old.isOverdue(at: round.now) {
            var row = old
            row.deadline = try deadline(of: old, round)
            return row.isOverdue(at: round.now) ? try stop(old, .deadline, round) : try store(&row, was: old, round)
        }
        let isDue = old.due.map { $0 <= round.now.steady } ?? false
        switch (old.state, old.waiting) {
        case (.scheduled, _):
            guard isDue || old.due == nil && (old.notBefore.map { $0 <= round.now.wall } ?? true) else { return }
            try change(old, round) { $0.leaveTime(as: .queued) }
        case (.running, .nothing) where isDue:
            // It has not killed the daemon within its trial.
            try change(old, round) { row in
                row.crashes = 0
                row.due = nil
            }
        case (.running, .timer) where isDue: try linkEnded(old, was: old, .success(.null), keepingSlot: false, round)
        case (.running, .timeout) where isDue, (.running, .children) where isDue, (.running, .job) where isDue:
            try timedOut(old, round)
        default: break
        }
    }

    /// Fails the link of a job that has waited longer than the link's timeout.
    private func timedOut(_ row: JobRow, _ round: Round) throws(StoreError) {
        if row.waiting == .children { try closeList(of: row, round) }
        let subject =
            switch row.waiting {
            case .children: "The list"
            case .job: "Job \(row.awaits ?? 0)"
            default: "The timer"
            }
        let error = JobError(
            .timeout,
            "\(subject) took longer than the timeout of \(JSON(row.step?.timeout ?? 0)) seconds; allow it more.")
        try linkEnded(row, was: row, .failure(error), keepingSlot: false, round)
    }

    // MARK: - Leftover work

    /// Does one piece of the oldest work of the next owner in turn.
    private func work(_ round: Round) throws(StoreError) {
        guard agenda.hasWork else { return }
        var work = try round.transaction.nextWork(ofOwnerAbove: agenda.lastWorker)
        if work == nil, agenda.lastWorker != nil { work = try round.transaction.nextWork(ofOwnerAbove: nil) }
        agenda.lastWorker = work?.owner
        guard let work else { return agenda.hasWork = false }
        switch work.kind {
        case .cancelChildren: try cancelChildren(work, round)
        case .removeTree: try removeTree(work, round)
        case .removeChildren: try removeChildren(work, round)
        case .tellDependents: try tellDependents(work, atMost: Self.pieceRows, round)
        case .dropDependencies: try dropDependencies(work, atMost: Self.pieceRows, round)
        case .removeParts: break
        }
    }

    private func cancelChildren(_ work: WorkRow, _ round: Round) throws(StoreError) {
        let rows = try round.transaction.unfinishedChildren(
            of: work.job, list: work.list, areGated: false, after: work.position, limit: Self.pieceRows)
        // The end of one may have changed another.
        for row in rows {
            if let present = try round.transaction.job(row.id), !present.state.isTerminal {
                try stop(present, .cancelled, round)
            }
        }
        try goOn(work, after: rows.count == Self.pieceRows ? rows.last?.id : nil, round)
    }

    /// Leaves the rest of a piece of work, after a position, to the next rounds; nil ends it.
    func goOn(_ work: WorkRow, after position: Int64?, _ round: Round) throws(StoreError) {
        guard let position else { return try end(work, round) }
        var work = work
        work.position = position
        try round.transaction.update(work)
    }

    func end(_ work: WorkRow, _ round: Round) throws(StoreError) {
        try round.transaction.endWork(work.id)
        pending.waits.append(.happened(.work(work.id)))
    }

    private func removeTree(_ work: WorkRow, _ round: Round) throws(StoreError) {
        var left = Self.pieceRows
        guard try removeChildren(of: work.job, fromLink: 0, &left, depth: 0, round) else { return }
        if let row = try round.transaction.job(work.job) { _ = try delete(row, round) }
        try end(work, round)
    }

    private func removeChildren(_ work: WorkRow, _ round: Round) throws(StoreError) {
        let first = Int(clamping: work.position)
        var left = Self.pieceRows
        guard try removeChildren(of: work.job, fromLink: first, &left, depth: 0, round) else { return }
        try round.transaction.dropTemplates(of: work.job, fromLink: first)
        try end(work, round)
        try goOnIfClean(work.job, round)
    }

    /// Removes the descendants of a job, bottom up; returns false if some are left for the next piece.
    private func removeChildren(
        of job: JobID, fromLink link: Int, _ left: inout Int, depth: Int, _ round: Round
    ) throws(StoreError) -> Bool {
        while true {
            let children = try round.transaction.children(of: job, fromLink: link, limit: max(1, left))
            if children.isEmpty { return true }
            for child in children {
                // A damaged row can be its own descendant; it must not block the engine.
                if child.children > 0, depth < 256 {
                    guard try removeChildren(of: child.id, fromLink: 0, &left, depth: depth + 1, round) else {
                        return false
                    }
                }
                guard left > 0 else { return false }
                left -= 1
                _ = try delete(child, round)
                if depth == 0, let parent = try round.transaction.job(job) {
                    try change(parent, round) { $0.children = max(0, $0.children - 1) }
                }
            }
        }
    }

    // MARK: - Retention

    /// Purges finished jobs that are too old, too many or too large.
    private func purge(_ round: Round) throws(StoreError) {
        let now = experience.aging(round.now)
        if let expiry = agenda.nextExpiry, expiry <= now {
            let cutoff = now.adding(seconds: -settings.retentionAge)
            let expired = try round.transaction.finished(owner: nil, before: cutoff, limit: Self.purgedAtOnce)
            for row in expired { _ = try dispose(row, round) }
            if expired.count == Self.purgedAtOnce { return agenda.mustTickAgain = true }
            let first = try round.transaction.dueTimes(after: .max, .distantFuture).firstEnd
            agenda.nextExpiry = first.map { $0.adding(seconds: settings.retentionAge) }
        }
        // A clock that leapt ahead is not trusted, and is checked only once a minute.
        if let expiry = agenda.nextExpiry, expiry <= round.now.wall {
            agenda.nextExpiry = round.now.wall.adding(seconds: 60)
        }
        // Jobs being removed count until they are gone.
        guard agenda.hasExcess, !agenda.hasWork else { return }
        var passed: Set<UInt32> = []
        var left = Self.purgedAtOnce
        while left > 0, let owner = quotas.owner(over: settings, except: passed) {
            let oldest = try round.transaction.finished(owner: owner, before: .distantFuture, limit: 1)
            // This owner's other finished jobs are below unfinished jobs or being removed.
            guard let row = oldest.first else {
                passed.insert(owner)
                continue
            }
            left -= 1
            if try dispose(row, round) != nil { return }
        }
        agenda.hasExcess = left == 0
    }
}

extension Timestamp {
    static let distantFuture = Timestamp(milliseconds: .max)
}
