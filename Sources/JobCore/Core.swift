package import JobModel

/// Decides everything, inside a transaction on the rows: what is admitted, what starts, what follows an end, who is told.
///
/// The engine gives it the inputs of a round, one by one, and asks it to ``close(at:in:)`` the round. After the commit
/// ``committed()`` gives what is to be done. Where the round was not committed, ``undone()`` and ``reset(from:runs:start:at:)``
/// make the memory what the rows say. It looks at no clock, and waits for nothing.
package final class Core {
    package enum Phase: Sendable, Hashable {
        case serving
        case stopping
    }

    // Rebuilt by `reset` of the rows and of the engine's runs.
    var running = RunningJobs()
    var scheduler: Scheduler
    var quotas = Quotas()
    var agenda = Agenda()

    // Learned outside of rounds, and kept by `reset`.
    package var settings: CoreSettings
    package var phase = Phase.serving
    var schedules: Schedules
    var subscriptions = Subscriptions()
    var waits = Waits()
    var experience: Experience

    /// What the present round is to have done.
    var pending = PendingEffects()

    /// A core for one life of the daemon; nothing is known before ``reset(from:runs:start:at:)``.
    package init(settings: CoreSettings, life: Int64, at now: CoreMoment) {
        self.settings = settings
        scheduler = Scheduler(perHost: settings.perHost, perHostAndUser: settings.perHostAndUser)
        schedules = Schedules(startedAt: now.wall)
        experience = Experience(life: life, startedAt: now)
    }

    // MARK: - A round

    /// The rows that handling an input will read, as far as the input tells.
    package static func keys(of input: CoreInput) -> [RowKey] {
        switch input {
        case .request(_, let request, let caller):
            switch request {
            case .submit(let jobs): jobs.compactMap { job in job.terms.lasting.key.map { .key(owner: caller.uid, $0) } }
            case .cancel(let job), .retry(let job, _), .remove(let job): [.job(job)]
            case .setSchedule(let new): [.schedule(new.key)]
            case .removeSchedule(let key), .runSchedule(let key), .suspendSchedule(let key, _): [.schedule(key)]
            case .wait(let jobs): jobs.map(RowKey.job)
            case .watch, .setQueue, .probe: []
            }
        case .prepared(let preparation, _): [.schedule(preparation.key)]
        case .abandon, .unsubscribe, .run, .cleaned, .tick, .room, .zones, .configure, .stop: []
        }
    }

    /// Reacts to one input of a round.
    package func handle(
        _ input: CoreInput, at now: CoreMoment, in transaction: any JobTransaction
    ) throws(StoreError) {
        let round = Round(transaction, now)
        if schedules.wasSetBack(at: now) { pending.rescan = .after(nil) }
        switch input {
        case .request(let id, let request, let caller): try handle(request, id, caller, round)
        case .abandon(let request): pending.change(.abandon(request))
        case .unsubscribe(let id): unsubscribe(id)
        case .run(let run, let event): try handle(event, of: run, round)
        case .cleaned(let work): try cleaned(work, round)
        case .prepared(let preparation, let job): try submit(preparation, job, round)
        case .tick: try tick(round)
        case .room(let shortage): roomChanged(shortage)
        case .zones(let rules):
            schedules.use(rules)
            pending.rescan = .after(nil)
        case .configure(let settings): try configure(settings, round)
        case .stop: stop()
        }
    }

    /// Ends a subscription, also outside of a round.
    package func unsubscribe(_ id: SubscriptionID) { subscriptions.remove(id) }

    /// The last step of a round: starts what may start, and stores the counts.
    package func close(at now: CoreMoment, in transaction: any JobTransaction) throws(StoreError) {
        try startReady(Round(transaction, now))
        try closeWithoutStarts(in: transaction)
    }

    /// The same where nothing may start, as the store fails.
    package func closeWithoutStarts(in transaction: any JobTransaction) throws(StoreError) {
        agenda.endRound()
        let counts = quotas.takeChanges()
        if !counts.isEmpty { try transaction.put(counts) }
    }

    /// The round is committed: gives what is to be done, in this order.
    package func committed() -> [CoreEffect] {
        var effects = pending.effects
        for (job, ids) in pending.ended { subscriptions.ended(job, for: ids) }
        for change in pending.waits { effects += waits.apply(change) }
        schedules.apply(pending.preparing, pending.rescan)
        for work in pending.cleaned { experience.cleaning.remove(work) }
        for (owner, count) in pending.totals { experience.count(owner, count) }
        if let shortage = pending.shortage { experience.shortage = shortage.reason }
        for case .removeFiles(let work) in effects { experience.cleaning.insert(work.id) }
        pending = PendingEffects()
        return effects
    }

    /// The round was not committed: nothing of it happened. ``reset(from:runs:start:at:)`` has to follow.
    package func undone() {
        for id in pending.subscribed { subscriptions.remove(id) }
        // Else that the clock was set back, which shows once, would be forgotten.
        schedules.lookAgain()
        pending = PendingEffects()
    }

    /// Whether a ``CoreInput/tick`` is wanted at a time.
    package func wantsTick(at now: CoreMoment) -> Bool {
        phase == .serving
            && (schedules.rescan != .none || agenda.wants(at: now)
                || scheduler.nextPauseEnd.map { $0 <= now.steady } ?? false)
    }

    /// Whether there is more to do at once than one round does: another ``CoreInput/tick`` is wanted.
    package var wantsTick: Bool { phase == .serving && (agenda.hasMore || schedules.rescan != .none) }

    /// When a ``CoreInput/tick`` is wanted at the latest: by the steady clock, and by the wall.
    package var nextTick: (steady: SteadyTime?, wall: Timestamp?) {
        guard phase == .serving else { return (nil, nil) }
        let steady = [agenda.deadlines.steady, scheduler.nextPauseEnd].compactMap(\.self).min()
        let wall = [agenda.deadlines.wall, agenda.nextExpiry].compactMap(\.self).min()
        return (steady, wall)
    }

    // MARK: - Small inputs

    private func stop() {
        phase = .stopping
        pending.change(.stop)
    }

    private func roomChanged(_ new: String?) {
        switch (experience.shortage, new) {
        case (nil, let reason?):
            log(.error, "No new jobs until there is room: \(reason)", event: .diskShort)
        case (_?, nil): log(.notice, "There is room for new jobs again.", event: .diskRoom)
        default: break
        }
        pending.learn(PendingEffects.Shortage(reason: new))
    }

    /// Reports a broken invariant, where `condition` is false. The daemon goes on: what it concerns ends by itself.
    func expect(_ condition: Bool, _ message: @autoclosure () -> String, job: JobID? = nil) {
        if !condition { log(.defect, message(), job: job, event: .defect) }
    }

    func log(
        _ level: CoreLog.Level, _ message: String, job: JobID? = nil, queue: String? = nil, event: CatalogEvent? = nil
    ) {
        pending.emit(.log(CoreLog(level, message, job: job, queue: queue, event: event)))
    }

    /// Tells a part of a job's story, where the log has room for it.
    func log(_ job: JobRow, _ event: JobLogEntry.Event, _ round: Round) {
        guard settings.jobLogging != .none else { return }
        let leftOut =
            settings.jobLogging == .all
            ? 0 : experience.logBudget.admit(isTrouble: event.isTrouble, at: round.now.steady)
        if let leftOut { pending.emit(.log(CoreLog(JobLogEntry(event, of: job, leftOut: leftOut)))) }
    }
}

/// A transaction and the moment of the present input.
struct Round {
    let transaction: any JobTransaction
    let now: CoreMoment

    init(_ transaction: any JobTransaction, _ now: CoreMoment) {
        self.transaction = transaction
        self.now = now
    }
}
