package import JobModel

/// Makes the memory what the rows say: at a start, and after a round that was not committed.
extension Core {
    /// What came before a reset.
    package enum Start: Sendable, Hashable {
        /// A round of this life was not committed.
        case resumed
        /// The last daemon ended in order, or the machine was started since.
        case clean
        /// The last daemon was killed.
        case crashed
    }

    /// Crashes in a row, with a source at work, after which a job fails instead of running again.
    private static let mostCrashes = 3
    /// Rows that are read at once.
    private static let page = 256

    /// Rebuilds the memory of the rows and of the runs that are at work, and takes over what the last daemon left. To be the
    /// only thing in its round, with ``close(at:in:)``.
    package func reset(
        from transaction: any JobTransaction, runs: [LiveRun], start: Start, at now: CoreMoment
    ) throws(StoreError) {
        let round = Round(transaction, now)
        running = RunningJobs(runs)
        quotas = Quotas(counts: try transaction.counts(), schedules: try transaction.scheduleCounts())
        agenda = Agenda()
        agenda.hasWork = true
        agenda.hasExcess = true
        try openQueues(round)
        try lookAhead(round)
        // Before new work of this kind is added.
        try cleanAgain(round)
        if start == .clean { try forgetCrashes(round) }
        if start != .resumed {
            try takeOver(isCrash: start == .crashed, round)
            try schedulesStarted(round)
        }
        for run in runs where !run.isStopping {
            // Its job was removed or stopped in a round whose effects were lost with it.
            if try transaction.job(run.job)?.run != run.run { cancel(run) }
        }
    }

    /// After a clean stop crashes are counted from zero again.
    private func forgetCrashes(_ round: Round) throws(StoreError) {
        var after: JobID = 0
        while true {
            let rows = try round.transaction.suspects(after: after, limit: Self.page)
            for old in rows {
                var row = old
                row.crashes = 0
                try store(&row, was: old, round)
                after = row.id
            }
            if rows.count < Self.page { return }
        }
    }

    /// The runs of the last daemon are gone: their jobs run again, or end.
    private func takeOver(isCrash: Bool, _ round: Round) throws(StoreError) {
        while true {
            let rows = try round.transaction.running(exceptLife: experience.life, limit: Self.page)
            for row in rows { try takeOver(row, isCrash: isCrash, round) }
            if rows.count < Self.page { return }
        }
    }

    private func takeOver(_ old: JobRow, isCrash: Bool, _ round: Round) throws(StoreError) {
        if old.waiting == .children, let list = try round.transaction.list(of: old.id), !old.isEnding {
            return try gather(list, old, round)
        }
        log(old, .resumed, round)
        var row = old
        if isCrash { row.crashes += 1 }
        if isCrash, row.crashes >= Self.mostCrashes, !row.isEnding {
            let error = JobError(
                .interrupted,
                "The daemon was killed \(row.crashes) times in a row while this ran; look at its log, "
                    + "then retry the job.")
            if row.presentSource?.hasChildren == true { try closeList(of: row, round) }
            try store(&row, was: old, round)
            return try linkEnded(row, .failure(error), keepingSlot: false, round)
        }
        if row.isEnding { try closeList(of: row, round) }
        let action = row.restart(at: round.now)
        // A cancelled download leaves nothing behind.
        if action == .finish, row.checkpointSize > 0 {
            _ = try removeParts(of: &row, links: 0...Int.max, round)
        }
        try store(&row, was: old, round)
        if action == .finish { try jobIsOver(row, round) }
    }

    /// Files whose removal was not reported are removed again, unless that is still going on.
    private func cleanAgain(_ round: Round) throws(StoreError) {
        var after: WorkID = 0
        while true {
            let rows = try round.transaction.work(after: after, limit: Self.page)
            for work in rows {
                after = work.id
                if work.kind == .removeParts, !experience.cleaning.contains(work.id) {
                    pending.emit(.removeFiles(work))
                }
            }
            if rows.count < Self.page { return }
        }
    }

    /// Every schedule is looked at once, by the rules of zones as they are now.
    private func schedulesStarted(_ round: Round) throws(StoreError) {
        var zones: Set<String> = []
        var after: ScheduleKey?
        while true {
            let rows = try round.transaction.schedules(after: after, limit: Self.page)
            for row in rows {
                after = row.schedule.key
                if let zone = row.schedule.timing.zone { zones.insert(zone) }
            }
            if rows.count < Self.page { break }
        }
        // The rules of zones, once read, have all of them looked at.
        if zones.isEmpty { pending.rescan = .after(nil) } else { pending.emit(.readZones(zones.sorted())) }
    }

    // MARK: - Looking

    /// What a reset rebuilds, as far as two cores that know the same must agree on it.
    package struct Inspection: Sendable, Hashable {
        package let slots: [String: [UInt32: Int]]
        package let permits: [String: [UInt32: Int]]
        package let runs: Set<RunID>
        package let counts: [CountKey: CountValue]
        /// Bytes that each owner has stored.
        package let stored: [UInt32: Int64]
        package let queues: [QueueStatus]
    }

    package var inspection: Inspection {
        let slots = scheduler.names.map { ($0, scheduler.running(in: $0)) }.filter { !$0.1.isEmpty }
        return Inspection(
            slots: Dictionary(uniqueKeysWithValues: slots), permits: scheduler.permits,
            runs: Set(running.all.map(\.run)), counts: quotas.counts, stored: quotas.stored,
            queues: scheduler.names.map(status))
    }

    /// What the core has in memory, by what bounds it.
    package struct Memory: Sendable, Hashable {
        /// Jobs in windows, and owners in queues, each of whom has one.
        package let (windows, shares): (Int, Int)
        package let (runs, waits, subscriptions): (Int, Int, Int)
        /// Files that are being removed, and schedules whose next job is being made.
        package let (cleaning, preparing): (Int, Int)
        /// Hosts that owners leave alone.
        package let pauses: Int
    }

    package var memory: Memory {
        Memory(
            windows: scheduler.windowCount, shares: scheduler.shareCount, runs: running.count, waits: waits.count,
            subscriptions: subscriptions.count, cleaning: experience.cleaning.count,
            preparing: schedules.preparingCount, pauses: scheduler.pauseCount)
    }
}
