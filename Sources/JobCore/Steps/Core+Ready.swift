import JobModel

/// Starting ready jobs.
extension Core {
    /// Jobs started per round: a job whose spec contains its outcome ends at once and frees its slot.
    private static let mostStarts = 1024

    func startReady(_ round: Round) throws(StoreError) {
        agenda.hasMoreReady = false
        try freeSuspects(round)
        guard phase == .serving else { return }
        try round.transaction.load(scheduler.candidates.map(RowKey.job))
        var hasSuspectAtWork: Bool?
        for _ in 0..<Self.mostStarts {
            guard let turn = try scheduler.next(in: round.transaction, at: round.now.steady) else { return }
            try start(turn, &hasSuspectAtWork, round)
        }
        agenda.hasMoreReady = true
    }

    /// `hasSuspectAtWork` is nil as long as this pass has not asked for it.
    private func start(
        _ turn: Scheduler.Turn, _ hasSuspectAtWork: inout Bool?, _ round: Round
    ) throws(StoreError) {
        guard let old = try round.transaction.job(turn.row.position.id), old.isReady, runsHere(old) else {
            return scheduler.giveBack(turn)
        }
        // A job is neither ready nor over before its run has ended.
        expect(running.run(of: old.id) == nil, "Job \(old.id) is ready, and has a run.", job: old.id)
        var row = old
        row.deadline = try deadline(of: old, round)
        let isOverdue = row.isOverdue(at: round.now)
        if isOverdue ? true : try isBelowStopped(old, round) {
            scheduler.giveBack(turn)
            // It is still ready, and may be so again in a moment at a `finally` link.
            scheduler.insert(old)
            return try stop(old, isOverdue ? .deadline : .cancelled, round)
        }
        if old.isSuspect {
            let mustWait = if let known = hasSuspectAtWork { known } else { try isSuspectAtWork(round) }
            hasSuspectAtWork = mustWait
            if mustWait {
                scheduler.giveBack(turn)
                row.waiting = .suspect
                return try store(&row, was: old, round)
            }
        }
        // Progress of a list that this life of the daemon has not changed is not published yet.
        if let parent = old.parent, let list = try round.transaction.list(of: parent.job) {
            pending.emit(.list(parent.job, list))
        }
        if row.link == 0, row.attempt == 0, let outcome = agenda.immediate[row.id] {
            if let host = turn.row.host { scheduler.release(1, host, turn.owner) }
            row.begin(nil, at: round.now)
            try store(&row, was: old, round)
            return try linkEnded(row, was: row, outcome, keepingSlot: true, round)
        }
        try begin(&row, was: old, host: turn.row.host, round)
        if row.isSuspect { hasSuspectAtWork = true }
    }

    private func isSuspectAtWork(_ round: Round) throws(StoreError) -> Bool {
        var hasOne = false
        try forEachCrashed(round) { row in hasOne = hasOne || row.isSuspect && row.run != nil }
        return hasOne
    }

    /// Makes the waiting suspects ready if none is at work, so that the next of them can start.
    private func freeSuspects(_ round: Round) throws(StoreError) {
        guard agenda.hasClearedSuspect else { return }
        agenda.hasClearedSuspect = false
        if try isSuspectAtWork(round) { return }
        try forEachCrashed(round) { (old) throws(StoreError) in
            if old.waiting == .suspect { try change(old, round) { $0.waiting = .nothing } }
        }
    }

    /// Calls `body` with each unfinished job whose source was running when the daemon was killed; it may change the job.
    func forEachCrashed(
        _ round: Round, _ body: (JobRow) throws(StoreError) -> Void
    ) throws(StoreError) {
        try forEach(
            { (last, limit) throws(StoreError) in
                try round.transaction.suspects(after: last?.id ?? 0, limit: limit)
            }, body)
    }
}
