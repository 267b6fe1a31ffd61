import JobModel

/// Starting ready jobs.
extension Core {
    /// Jobs started per round: a job whose spec contains its outcome ends at once and frees its slot.
    private static let mostStarts = 1024

    func startReady(_ round: Round) throws(StoreError) {
        agenda.hasMoreReady = false
        guard phase == .serving else { return }
        scheduler.beginTurns()
        for _ in 0..<Self.mostStarts {
            guard let turn = try scheduler.next(in: round.transaction, at: round.now.steady) else { return }
            try start(turn, round)
        }
        agenda.hasMoreReady = true
    }

    private func start(_ turn: Scheduler.Turn, _ round: Round) throws(StoreError) {
        guard let old = try round.transaction.job(turn.row.position.id), old.isReady else { return giveBack(turn) }
        // A job is neither ready nor over before its run has ended.
        expect(running.run(of: old.id) == nil, "Job \(old.id) is ready, and has a run.", job: old.id)
        let isOverdue = old.deadline.map { $0 <= round.now.steady } ?? false
        let mustStop = isOverdue ? true : try isBelowStopped(old, round)
        if mustStop {
            giveBack(turn)
            // It is still ready, and may be so again in a moment at a `finally` link.
            scheduler.insert(old)
            return try stop(old, isOverdue ? .deadline : .cancelled, round)
        }
        // Progress of a list that this life of the daemon has not changed is not published yet.
        if let parent = old.parent, let list = try round.transaction.list(of: parent.job) {
            pending.emit(.list(parent.job, list))
        }
        var row = old
        if row.link == 0, row.attempt == 0, let outcome = agenda.immediate[row.id] {
            if let host = turn.row.host { scheduler.release(1, host, turn.owner) }
            row.begin(nil, at: round.now)
            try store(&row, was: old, round)
            return try linkEnded(row, outcome, keepingSlot: true, round)
        }
        try begin(&row, was: old, host: turn.row.host, permits: turn.row.host == nil ? 0 : 1, round)
    }

    private func giveBack(_ turn: Scheduler.Turn) {
        scheduler.releaseSlot(turn.queue, turn.owner)
        if let host = turn.row.host { scheduler.release(1, host, turn.owner) }
    }
}
