package import JobModel

/// Rebuilds the memory from the rows, at a start and after a round that was not committed.
extension Core {
    /// What preceded a reset.
    package enum Start: Sendable, Hashable {
        /// A round of this life was not committed.
        case resumed
        /// The last daemon stopped cleanly, or the machine has restarted since.
        case clean
        /// The last daemon was killed.
        case crashed
    }

    /// Calls `body` with each row that `read` returns behind the last one, page by page.
    func forEach<Row>(
        _ read: (_ last: Row?, _ limit: Int) throws(StoreError) -> [Row], _ body: (Row) throws(StoreError) -> Void
    ) throws(StoreError) {
        let page = 256
        var last: Row?
        while true {
            let rows = try read(last, page)
            for row in rows { try body(row) }
            guard rows.count == page else { return }
            last = rows.last
        }
    }

    /// Rebuilds the memory from the rows and the live runs, and takes over from the last daemon.
    /// It must be alone in its round, with ``close(at:in:)``.
    package func reset(
        from transaction: any JobTransaction, runs: [LiveRun], start: Start, at now: CoreMoment
    ) throws(StoreError) {
        let round = Round(transaction: transaction, now: now)
        running = RunningJobs(runs)
        quotas = Quotas(counts: try transaction.counts(), schedules: try transaction.scheduleCounts())
        agenda = Agenda()
        agenda.hasWork = true
        agenda.hasExcess = true
        agenda.hasClearedSuspect = true
        try openQueues(round)
        try lookAhead(round)
        // Must precede new work of this kind.
        try cleanAgain(round)
        if start == .clean { try forgetCrashes(round) }
        if start != .resumed {
            try takeOver(isCrash: start == .crashed, round)
            try schedulesStarted(round)
        }
        // A round whose effects were lost may have removed or stopped a job.
        for run in runs { stopIfNeeded(run, try transaction.job(run.job)) }
    }

    /// Stops a run that its job's row does not want any more.
    func stopIfNeeded(_ run: LiveRun, _ row: JobRow?) {
        let isHeld = row?.state == .held
        if !run.isStopping, row?.run != run.run || row?.isEnding == true || isHeld { cancel(run, keepsPart: isHeld) }
    }

    /// Resets the crash counts after a clean stop.
    private func forgetCrashes(_ round: Round) throws(StoreError) {
        try forEachCrashed(round) { (old) throws(StoreError) in
            try change(old, round) { row in
                row.crashes = 0
                if row.waiting == .suspect { row.waiting = .nothing }
            }
        }
    }

    /// Restarts or ends the jobs whose runs died with a daemon.
    func takeOver(isCrash: Bool, _ round: Round) throws(StoreError) {
        var wasStopped: [Int64: Bool] = [:]
        try forEach { (_, limit) throws(StoreError) in
            try round.transaction.lostRuns(limit: limit)
        } _: { (row) throws(StoreError) in
            // The end of one may have changed another.
            guard let present = try round.transaction.job(row.id), present.run == row.run, let life = row.run?.life
            else { return }
            if wasStopped[life] == nil { wasStopped[life] = try round.transaction.wasStopped(life: life) ?? !isCrash }
            let isStop = wasStopped[life] == true
            try takeOver(present, isCrash: !isStop, round)
        }
        try forEach { (last: JobRow?, limit) throws(StoreError) in
            try round.transaction.stranded(after: last?.id ?? 0, limit: limit)
        } _: { (old) throws(StoreError) in
            if old.followsPart { try change(old, round) { $0.leavePart() } }
        }
        try round.transaction.forgetLostLives()
    }

    private func takeOver(_ old: JobRow, isCrash: Bool, _ round: Round) throws(StoreError) {
        if old.state == .held {
            try change(old, round) { $0.unbegin(as: .held) }
            return
        }
        var row = old
        log(old, .resumed, round)
        if old.presentSource == .program, let run = old.run {
            keep(run.output(), in: &row)
            pending.emit(.measure(old.id, run.output()))
        }
        if !old.isEnding, let error = interruption(of: old, isCrash: isCrash) {
            if old.presentSource?.hasChildren == true { try closeList(of: old, round) }
            return try linkEnded(row, was: old, .failure(error), keepingSlot: false, round)
        }
        if isCrash { row.crashes += 1 }
        if old.waiting == .children, let list = try round.transaction.list(of: old.id), !old.isEnding {
            return try gather(list, row, round)
        }
        if row.isEnding { try closeList(of: row, round) }
        row.restart(at: round.now)
        // A cancelled download keeps no partial files.
        if row.state.isTerminal, row.checkpointSize > 0 {
            _ = try removeParts(of: &row, links: 0...Int.max, round)
        }
        try store(&row, was: old, round)
        if row.state.isTerminal { try jobIsOver(row, round) }
    }

    /// Returns why a lost run is not repeated; nil if it is.
    private func interruption(of row: JobRow, isCrash: Bool) -> JobError? {
        if isCrash, row.isSuspect {
            return JobError(
                .interrupted,
                "The daemon was killed \(row.crashes + 1) times in a row while this ran; look at its log, "
                    + "then retry the job.")
        }
        guard row.step?.isRepeatable == false else { return nil }
        return JobError(
            .interrupted,
            "The daemon \(isCrash ? "was killed" : "stopped, or lost its database,") while this ran, and it may have had an effect; "
                + "check that, then retry the job. A job with \"retry\" is repeated.")
    }

    /// Repeats file removals that were not reported, unless they are still in progress.
    func cleanAgain(_ round: Round) throws(StoreError) {
        try forEach { (last: WorkRow?, limit) throws(StoreError) in
            try round.transaction.work(after: last?.id ?? 0, limit: limit)
        } _: { work in
            if work.kind == .removeParts, !experience.cleaning.contains(work.id) { removeFiles(work) }
        }
    }

    /// Checks every schedule with the current rules of its zone.
    func schedulesStarted(_ round: Round) throws(StoreError) {
        var zones: Set<String> = []
        try forEach { (last: Schedule?, limit) throws(StoreError) in
            try round.transaction.schedules(after: last?.key, limit: limit)
        } _: { row in
            if let zone = row.timing.zone { zones.insert(zone) }
        }
        // Rules that were read trigger a check of all schedules.
        if zones.isEmpty { schedules.rescan = .after(nil) } else { pending.emit(.readZones(zones.sorted())) }
    }
}
