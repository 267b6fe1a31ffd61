package import JobModel

/// Queues and configuration changes.
extension Core {
    /// Returns whether the configuration or an administrator created a queue.
    /// A queue removed from the configuration only runs the jobs that it has.
    private func isDefined(_ name: String) -> Bool {
        configured(name) != nil || agenda.storedQueues[name]?.concurrency != nil
    }

    private func configured(_ name: String) -> QueueSettings? { settings.queues.first { $0.name == name } }

    package func status(of name: String) -> QueueStatus {
        QueueStatus(
            settings: scheduler.settings(of: name) ?? QueueSettings(name: name, concurrency: 0),
            perUser: scheduler.perUser(of: name), takesJobs: scheduler.takesJobs(name))
    }

    func setQueue(
        _ name: String, _ change: QueueChange, _ id: RequestID, _ caller: Caller, _ round: Round
    ) throws(StoreError) {
        guard caller.isAdmin else {
            return fail(id, ProtocolError(.forbidden, "Only administrators change queues; ask one of them."))
        }
        let name = scheduler.settings(of: name)?.name ?? name
        guard scheduler.has(queue: name) || scheduler.names.count < QueueSettings.most else {
            let message = "There are \(QueueSettings.most) queues already; use one of them."
            return fail(id, .busy(message, retryAfter: 60))
        }
        var changed = change.applied(to: agenda.storedQueues[name] ?? QueueOverrides())
        // A queue that was only suspended for a while keeps nothing stored.
        if changed.isSuspended == (configured(name)?.isSuspended ?? false) { changed.isSuspended = nil }
        // A queue that an administrator creates has a concurrency of its own, so that it takes jobs.
        if !scheduler.has(queue: name), changed.concurrency == nil {
            changed.concurrency = QueueSettings(name: name).concurrency
        }
        let stored = changed == QueueOverrides() ? nil : changed
        try round.transaction.put(stored, ofQueue: name)
        agenda.storedQueues[name] = stored
        openQueue(name)
        showQueues()
        answer(id, .queue(status(of: name)))
    }

    /// Rebuilds the scheduler from the configuration, the stored queues and the live runs.
    func openQueues(_ round: Round) throws(StoreError) {
        scheduler = Scheduler(
            perHost: settings.perHost, perHostAndUser: settings.perHostAndUser, keeping: scheduler)
        agenda.storedQueues = try round.transaction.queues()
        for name in Set(settings.queues.map(\.name)).union(agenda.storedQueues.keys) where isDefined(name) {
            openQueue(name)
        }
        // Queues removed from the configuration may still have jobs; no queue ever allowed fewer than one.
        let present = quotas.present
        let used = Set(present.map(\.queue)).union(running.all.lazy.map(\.queue))
        for name in used.sorted() where !scheduler.has(queue: name) {
            openQueue(name)
            guard present.contains(where: { $0.queue == name && !$0.state.isTerminal }) else { continue }
            log(
                .warning, "A queue with jobs is not configured; they run one at a time, and it takes no new ones.",
                queue: name)
        }
        for key in quotas.queued { scheduler.rereadStored(queue: key.queue, owner: key.owner, hasJobs: true) }
        for run in running.all { scheduler.hold(run) }
        showQueues()
    }

    /// Opens a queue. One that neither the configuration nor an administrator made runs its existing jobs one at a time.
    func openQueue(_ name: String) {
        let configured = configured(name) ?? QueueSettings(name: name, concurrency: 1)
        let queue = agenda.storedQueues[name]?.applied(to: configured) ?? configured
        scheduler.open(queue, perUser: settings.perUser(queue), takesJobs: isDefined(name))
    }

    /// Publishes the current queues.
    func showQueues() { pending.emit(.queues(scheduler.names.map(status))) }

    func configure(_ changed: CoreSettings, _ round: Round) throws(StoreError) {
        settings = changed
        try openQueues(round)
        agenda.nextExpiry = round.now.wall
        // The machine's rules may be newer.
        let zones = schedules.zones.keys.filter { $0 != "UTC" }.sorted()
        if !zones.isEmpty { pending.emit(.readZones(zones)) }
    }

    // MARK: - Status

    /// The core's state that needs no store access.
    package struct Status: Sendable {
        package static let initial = Status()

        /// Jobs by owner, queue and state.
        package var counts: [CountKey: CountValue] = [:]
        /// Totals since the start, by owner.
        package var totals: [UInt32: CoreTotals] = [:]
        /// Schedules by owner.
        package var schedules: [UInt32: CountValue] = [:]
        /// Watches by owner.
        package var watches: [UInt32: Int] = [:]
        /// Why no jobs are accepted, if there is too little room.
        package var shortage: String?
    }

    package var status: Status {
        Status(
            counts: quotas.counts, totals: experience.totals, schedules: quotas.schedules,
            watches: subscriptions.byUser, shortage: experience.shortage)
    }

    /// The intervals of progress reports, in milliseconds.
    package var progressIntervals: some Collection<Int> { subscriptions.intervals }

    /// Returns a running job and the subscriptions that cover it, by interval; nil if no subscriber is interested.
    package func watchers(
        of id: JobID, in transaction: any JobTransaction
    ) throws(StoreError) -> (row: JobRow, byInterval: [Int: [SubscriptionID]])? {
        guard !subscriptions.isEmpty, let row = try transaction.job(id), row.state == .running, !row.isRemoving
        else { return nil }
        let round = Round(transaction: transaction, now: experience.startedAt)
        let ancestors = subscriptions.coverDescendants ? try ancestors(of: row, round) : []
        let found = subscriptions.covering(row, below: ancestors, told: [])
        guard !found.isEmpty else { return nil }
        return (row, Dictionary(grouping: found) { subscriptions.interval(of: $0) ?? 0 })
    }
}
