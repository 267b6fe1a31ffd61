import JobModel

/// Changes of jobs that users ask for: of one job, or of many.
extension Core {
    /// Returns a job if `caller` may see it.
    func find(_ id: JobID, _ caller: Caller, _ round: Round) throws(StoreError) -> JobRow? {
        guard let row = try round.transaction.job(id), caller.sees(row) else { return nil }
        return row
    }

    func change(
        _ id: JobID, _ action: JobAction, _ request: RequestID, _ caller: Caller, _ round: Round
    ) throws(StoreError) {
        if let refusal = refusal(of: action) { return fail(request, refusal) }
        guard let row = try find(id, caller, round) else { return fail(request, .noJob(id)) }
        if let refusal = try refusal(of: action, row, round) { return fail(request, refusal) }
        let event = try carryOut(action, row, round)
        let answer: CoreAnswer = action == .remove ? .done : .changed(id)
        guard let event else { return self.answer(request, answer) }
        pending.waits.append(.begin(request, [event], answer))
    }

    /// Changes each of these jobs that exists and allows the action, or only counts them. An obstacle that does not lie
    /// in a job, or that passes, ends the change, so that its caller can repeat it.
    func change(
        _ ids: [JobID], _ action: JobAction, onlyCounts: Bool, _ request: RequestID, _ caller: Caller, _ round: Round
    ) throws(StoreError) {
        if let refusal = refusal(of: action) { return fail(request, refusal) }
        var count = 0
        var events: Set<Waits.Event> = []
        for id in ids {
            guard let row = try find(id, caller, round) else { continue }
            if let refusal = try refusal(of: action, row, round) {
                switch ProtocolError.Code(rawValue: refusal.code) {
                case .busy, .storage: return fail(request, refusal)
                default: continue
                }
            }
            count += 1
            if onlyCounts { continue }
            // The ends of runs are not waited for: those of programs may take seconds.
            if case .work(let work)? = try carryOut(action, row, round) { events.insert(.work(work)) }
        }
        let answer = CoreAnswer.counted(done: count, skipped: ids.count - count)
        pending.waits.append(.begin(request, events, answer))
    }

    // MARK: - What the state allows

    /// Returns why no job can be changed so.
    private func refusal(of action: JobAction) -> ProtocolError? {
        guard case .set(let settings) = action, let queue = settings.queue else { return nil }
        return refusal(of: [(queue, JSONPointer(["queue"]))])
    }

    /// Returns why a job cannot be changed.
    private func refusal(of action: JobAction, _ row: JobRow, _ round: Round) throws(StoreError) -> ProtocolError? {
        func wrongState(_ message: String) -> ProtocolError { .wrongState(row.state, message) }
        let isOver = row.state.isTerminal
        switch action {
        case .cancel:
            return isOver ? wrongState("Job \(row.id) already \(row.state.past); there is nothing to cancel.") : nil
        case .retry(let point): return try refusalToRetry(row, from: point, round)
        case .remove:
            if row.parent != nil { return wrongState("Job \(row.id) is a child; it is removed with its parent.") }
            guard isOver else {
                return wrongState("Job \(row.id) is \(row.state.rawValue); cancel it before removing it.")
            }
            // Those that have ended are about to be dropped.
            let dependent = try dependent(of: row, round) { !$0.state.isTerminal }
            guard let dependent else { return nil }
            return wrongState(
                "Job \(dependent) waits for job \(row.id); cancel it first, or remove job \(row.id) after it.")
        case .hold:
            if isOver || row.state == .held { return wrongState("Job \(row.id) \(row.state.standing).") }
            if row.stop != nil { return wrongState("Job \(row.id) is being stopped, and cannot be held.") }
            guard row.state == .running else { return nil }
            let isDownload = row.presentSource == .download && row.run != nil && !row.isAtFinally
            return isDownload
                ? nil : wrongState("Job \(row.id) is running; only a running download can be held. Cancel the job.")
        case .release:
            if row.state == .held, row.run != nil {
                return .busy("Job \(row.id) is stopping; release it in a moment.", retryAfter: 1)
            }
            if row.state == .held || row.state == .scheduled { return nil }
            return wrongState("Job \(row.id) \(row.state.standing); only held or scheduled jobs are released.")
        case .set(let settings):
            if isOver { return wrongState("Job \(row.id) already \(row.state.past), and takes no settings.") }
            if row.state == .running || row.run != nil, !settings.fitRunning {
                return wrongState(
                    "Job \(row.id) is running; its queue, priority and start time can no longer change; cancel it, then retry it."
                )
            }
            guard settings.rate != nil, !row.plan.downloads else { return nil }
            return ProtocolError(
                SpecError(JSONPointer(["rate"]), "Job \(row.id) has no download to which a rate applies."))
        }
    }

    private func refusalToRetry(
        _ row: JobRow, from point: RetryPoint, _ round: Round
    ) throws(StoreError) -> ProtocolError? {
        guard row.parent == nil else {
            return .wrongState(row.state, "Job \(row.id) is a child; retry its parent.")
        }
        guard row.state.isTerminal, row.state != .succeeded || point == .start else {
            let rest =
                row.state == .succeeded
                ? "retry it from \"start\" to run it again." : "only finished jobs can be retried."
            return .wrongState(row.state, "Job \(row.id) \(row.state.standing); \(rest)")
        }
        // The jobs that waited for its end, or that of a child, get that end, and take over its files.
        let taker = try dependent(of: row, round) { (dependent) throws(StoreError) in
            guard dependent.waiting == .job, let awaited = dependent.awaits else { return false }
            return try round.transaction.job(awaited)?.state.isTerminal == true
        }
        let isTelling = try round.transaction.hasWork(.tellDependents, of: row.id)
        if isTelling || taker != nil {
            return .busy("Job \(row.id) has just ended; retry it in a moment.", retryAfter: 1)
        }
        if !row.holdsKey, let key = row.key,
            let holder = try round.transaction.holder(ofKey: key, owner: row.owner)?.job
        {
            let keepsKey = try round.transaction.job(holder)?.terms.keepsKey ?? true
            let advice = keepsKey ? "remove that job first" : "wait for its end"
            return .keyConflict(holder, "The key of job \(row.id) belongs to job \(holder) now; \(advice).")
        }
        // A retried job waits like a submitted one.
        return refusalWithoutRoom ?? refusalOfWaiting(row.owner)
    }

    // MARK: - Changing

    /// Changes a job; returns the event at which that is complete, if it takes time.
    private func carryOut(_ action: JobAction, _ row: JobRow, _ round: Round) throws(StoreError) -> Waits.Event? {
        switch action {
        case .cancel:
            try stop(row, .cancelled, round)
            // All but programs end at once, so the caller learns the outcome.
            guard let present = try round.transaction.job(row.id), present.isEnding, present.run != nil,
                present.presentSource?.endsLater != true
            else { return nil }
            return .stop(row.id)
        case .retry(let point): try retry(row, from: point, round)
        case .remove: return try dispose(row, round).map(Waits.Event.work)
        case .hold: return try hold(row, round)
        case .release: try change(row, round) { $0.leaveTime(as: .queued) }
        case .set(let settings): try set(settings, row, round)
        }
        return nil
    }

    private func retry(_ old: JobRow, from point: RetryPoint, _ round: Round) throws(StoreError) {
        var row = old
        row.retry(from: point, at: round.now)
        let first = row.link
        let gone = row.blobs.filter { $0.link >= first && !$0.isOutput && $0.blob != row.carried?.blob }
        row.blobs.removeAll { gone.contains($0) }
        if old.children > 0 {
            row.waiting = .cleaning
            try add(
                WorkRow(kind: .removeChildren, job: row.id, owner: row.owner, position: Int64(first)), round)
        } else if try round.transaction.hasWork(.removeParts, of: row.id) {
            row.waiting = .cleaning
        }
        log(row, .retried, round)
        try store(&row, was: old, round)
        try recheckSchedule(of: row, round)
        if !gone.isEmpty { pending.emit(.unlink(gone.map(\.blob))) }
    }

    /// Holds a job. A running download stops, keeps its part, and resumes after its release.
    private func hold(_ old: JobRow, _ round: Round) throws(StoreError) -> Waits.Event? {
        let row = try change(old, round) { $0.leaveTime(as: .held) }
        guard row.run != nil else { return nil }
        // That of another node is stopped by its news.
        if let live = running.run(of: row.id) { cancel(live, keepsPart: true) }
        return .stop(row.id)
    }

    /// Handles the end of a run whose job is held.
    func heldRunEnded(_ old: JobRow, _ live: LiveRun, _ end: RunEnd, _ round: Round) throws(StoreError) {
        guard end.outcome.error == nil else {
            release(live)
            try change(old, round) { $0.unbegin(as: .held) }
            return
        }
        // It had succeeded before it was told to stop.
        var row = old
        row.state = .running
        try store(&row, was: old, isPassing: true, round)
        try runEnded(row, live, end, round)
    }

    private func set(_ settings: JobSettings, _ old: JobRow, _ round: Round) throws(StoreError) {
        var row = old
        if settings.changeTerms { row.terms = old.terms.changed(by: settings) }
        if let start = settings.start { row.start(start, at: round.now) }
        // One that is being stopped has no deadline any more.
        if let deadline = settings.deadline, row.stop == nil {
            let above = try old.parent.map { (parent) throws(StoreError) in try round.transaction.job(parent.job) }
            row.deadline = deadline.map { round.now.steady(after: $0) } ?? above??.deadline
        }
        row.rate = settings.rate ?? old.rate
        row.notifies = settings.notifies ?? old.notifies
        try store(&row, was: old, round)
        if row.terms != old.terms { try round.transaction.replaceTerms(of: row, was: old) }
        if row.tags != old.tags, row.parent == nil {
            let present = subscriptions.covering(row, below: [], told: [])
            let left = subscriptions.covering(old, below: [], told: []).filter { !present.contains($0) }
            pending.emit(.gone(row.id, for: left))
        }
        if settings.rate != nil, let run = row.run { pending.emit(.setRate(run, row.rate)) }
    }
}

extension JobTerms {
    fileprivate func changed(by settings: JobSettings) -> JobTerms {
        JobTerms(
            plan: JobPlan(source: plan.source, links: plan.links, deadline: settings.deadline ?? plan.deadline),
            queue: settings.queue ?? queue, priority: settings.priority ?? priority, key: key, keepsKey: keepsKey,
            tags: settings.tags ?? tags, label: settings.label ?? label)
    }
}

extension JobState {
    /// Its verb in messages.
    fileprivate var past: String {
        switch self {
        case .succeeded: "succeeded"
        case .failed: "failed"
        case .cancelled: "was cancelled"
        case .scheduled, .held, .queued, .running: rawValue
        }
    }

    fileprivate var standing: String { isTerminal ? "already \(past)" : "is \(rawValue)" }
}
