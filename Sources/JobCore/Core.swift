package import JobModel

/// Decides which jobs are admitted, start, retry and end, and which subscribers are told, inside a store transaction.
///
/// In each round the engine calls ``open(at:in:)``, passes its inputs one by one, then calls ``close(at:in:)``. After the commit,
/// ``committed()`` returns the effects. If the commit fails, ``undone()`` and ``reset(from:runs:start:at:)`` restore
/// the memory from the rows. The core reads no clock and never blocks.
package final class Core {
    package enum Phase: Sendable, Hashable {
        case serving
        case stopping
    }

    // Rebuilt by `reset` from the rows and the engine's runs.
    package internal(set) var running = RunningJobs()
    package internal(set) var scheduler: Scheduler
    package internal(set) var quotas = Quotas()
    var agenda = Agenda()

    // Not stored in rows; kept by `reset`.
    package var settings: CoreSettings
    package var phase = Phase.serving
    var schedules: Schedules
    /// The engine removes those whose client is gone, also outside of rounds.
    package var subscriptions = Subscriptions()
    package internal(set) var waits = Waits()
    package internal(set) var experience: Experience
    /// As of the last committed round.
    private var committedExperience: Experience

    /// The effects of the current round.
    var pending = PendingEffects()

    /// Creates a core for one life of the daemon; it is empty until ``reset(from:runs:start:at:)``. Times of schedules are
    /// missed if they passed before `upSince`, when the first of the present nodes began; nil for now. `boot` identifies the
    /// present boot of the machine.
    package init(
        settings: CoreSettings, life: Int64, at now: CoreMoment, upSince: Timestamp? = nil, boot: String = ""
    ) {
        self.settings = settings
        scheduler = Scheduler(perHost: settings.perHost, perHostAndUser: settings.perHostAndUser)
        schedules = Schedules(startedAt: upSince ?? now.wall, boot: boot)
        experience = Experience(life: life, startedAt: now)
        committedExperience = experience
    }

    // MARK: - Rounds

    /// Returns the rows that handling an input will read, as far as the input names them.
    package static func keys(of input: CoreInput) -> [RowKey] {
        switch input {
        case .request(_, let request, let caller):
            switch request {
            case .submit(let jobs):
                jobs.flatMap { job in
                    job.jobs.map { .job($0.id) } + (job.terms.lasting.key.map { [.key(owner: caller.uid, $0)] } ?? [])
                }
            case .change(let job, _): [.job(job)]
            case .changeAll(let jobs, _, _), .wait(let jobs): jobs.map(RowKey.job)
            case .setSchedule(let new): [.schedule(new.schedule.key)]
            case .removeSchedule(let key), .runSchedule(let key), .suspendSchedule(let key, _): [.schedule(key)]
            case .watch, .setQueue, .probe: []
            }
        case .prepared(let preparation, _): [.schedule(preparation.key)]
        case .measured(let job, _): [.job(job)]
        case .abandon, .unsubscribe, .run, .cleaned, .tick, .room, .zones, .configure, .stop: []
        }
    }

    /// The number of this life, which the engine changes if the store began another one; a reset follows.
    package var life: Int64 {
        get { experience.life }
        set { experience.life = newValue }
    }

    /// Handles one input of a round.
    package func handle(
        _ input: CoreInput, at now: CoreMoment, in transaction: any JobTransaction
    ) throws(StoreError) {
        let round = Round(transaction: transaction, now: now)
        if schedules.wasSetBack(at: now) { schedules.rescan = .after(nil) }
        switch input {
        case .request(let id, let request, let caller): try handle(request, id, caller, round)
        case .abandon(let request): pending.waits.append(.abandon(request))
        case .unsubscribe(let id): subscriptions.remove(id)
        case .run(let run, let event): try handle(event, of: run, round)
        case .cleaned(let work): try cleaned(work, round)
        case .measured(let job, let output): try measured(job, output, round)
        case .prepared(let preparation, let job): try submit(preparation, job, round)
        case .tick: try tick(round)
        case .room(let shortage): try roomChanged(shortage, round)
        case .zones(let rules):
            schedules.use(rules)
            if !rules.isEmpty { schedules.rescan = .after(nil) }
        case .configure(let settings): try configure(settings, round)
        case .stop:
            phase = .stopping
            pending.waits.append(.stop)
        }
    }

    /// Ends a round: starts ready jobs and stores the counts.
    package func close(at now: CoreMoment, in transaction: any JobTransaction) throws(StoreError) {
        try startReady(Round(transaction: transaction, now: now))
        try closeWithoutStarts(in: transaction)
    }

    /// Ends a round without starting jobs, because the store fails.
    package func closeWithoutStarts(in transaction: any JobTransaction) throws(StoreError) {
        if !agenda.immediate.isEmpty { agenda.immediate = [:] }
        let counts = quotas.takeChanges()
        if !counts.isEmpty { try transaction.put(counts) }
    }

    /// Applies the committed round and returns its effects, in order.
    package func committed() -> [CoreEffect] {
        var effects = pending.effects
        for (job, ids) in pending.ended { subscriptions.ended(job, for: ids) }
        for change in pending.waits { effects += waits.apply(change) }
        committedExperience = experience
        pending = PendingEffects()
        return effects
    }

    /// Discards a round that was not committed; ``reset(from:runs:start:at:)`` must follow.
    package func undone() {
        for id in pending.subscribed { subscriptions.remove(id) }
        experience.undo(to: committedExperience)
        // Otherwise a clock set back, which shows only once, would be missed.
        schedules.lookAgain()
        pending = PendingEffects()
    }

    /// Returns whether a ``CoreInput/tick`` is due.
    package func wantsTick(at now: CoreMoment) -> Bool {
        let (steady, wall) = nextTick
        return wantsTick || steady.map { $0 <= now.steady } ?? false || wall.map { $0 <= now.wall } ?? false
    }

    /// Whether the last round left work that needs another ``CoreInput/tick`` at once.
    package var wantsTick: Bool { phase == .serving && (agenda.hasMore || schedules.rescan != .none) }

    /// The latest times for the next ``CoreInput/tick``, by the steady clock and by the wall clock.
    package var nextTick: (steady: SteadyTime?, wall: Timestamp?) {
        guard phase == .serving else { return (nil, nil) }
        let steady = [agenda.due.steady, scheduler.nextOpening].compactMap(\.self).min()
        let wall = [agenda.due.wall, agenda.nextExpiry].compactMap(\.self).min()
        return (steady, wall)
    }

    // MARK: - Small inputs

    private func roomChanged(_ new: String?, _ round: Round) throws(StoreError) {
        switch (experience.shortage, new) {
        case (nil, let reason?):
            log(.error, "No new jobs until there is room: \(reason)", event: .diskShort)
        case (_?, nil): log(.notice, "There is room for new jobs again.", event: .diskRoom)
        default: break
        }
        experience.shortage = new
        try lookAhead(round)
    }

    /// Logs a defect if `condition` is false; the daemon continues, and the affected job or run ends by itself.
    func expect(_ condition: Bool, _ message: @autoclosure () -> String, job: JobID? = nil) {
        if !condition { log(.defect, message(), job: job, event: .defect) }
    }

    func log(
        _ level: CoreLog.Level, _ message: String, job: JobID? = nil, queue: String? = nil, event: CatalogEvent? = nil
    ) {
        pending.emit(.log(CoreLog(level, message, job: job, queue: queue, event: event)))
    }

    /// Logs an event of a job if the log budget allows it.
    func log(_ job: JobRow, _ event: CoreLog.Event, _ round: Round) {
        guard settings.jobLogging != .none else { return }
        let leftOut =
            settings.jobLogging == .all
            ? 0 : experience.logBudget.admit(isTrouble: event.isTrouble, at: round.now.steady)
        if let leftOut { pending.emit(.log(CoreLog(event, of: job, leftOut: leftOut))) }
    }
}

/// The transaction and the moment of the current input.
struct Round {
    let transaction: any JobTransaction
    let now: CoreMoment
}
