import JobModel

/// Schedules: requests, times, and submission of their jobs.
extension Core {
    // MARK: - Requests

    func setSchedule(_ new: NewSchedule, _ id: RequestID, _ caller: Caller, _ round: Round) throws(StoreError) {
        let old = try round.transaction.schedule(new.schedule.key)
        var schedule = new.schedule
        (schedule.setAt, schedule.doneUntil) = (round.now.wall, round.now.wall)
        schedule.skip(boot: schedules.boot)
        schedule.specSize = new.spec.count
        // Groups of an administrator do not apply to another user's schedule.
        schedule.groups = caller.uid == schedule.key.owner ? caller.groups : nil
        if let old {
            // A clock that was ahead may have left a time to come, until which it would have no job.
            schedule.lastTime = old.lastTime.map { min($0, round.now.wall) }
            schedule.lastJob = old.lastJob
            schedule.submitted = old.submitted
            // Waiting times belonged to the replaced spec.
            schedule.skipped = old.skipped + old.waiting.count
        }
        if let refusal = try refusal(of: new, schedule, old, round) { return fail(id, refusal) }
        if let zone = schedule.timing.zone { schedules.use([zone: new.zone]) }
        try store(schedule, was: old, spec: new.spec, round)
        answer(id, .done)
    }

    private func refusal(
        of new: NewSchedule, _ schedule: Schedule, _ old: Schedule?, _ round: Round
    ) throws(StoreError) -> ProtocolError? {
        if let refusal = refusalWithoutRoom ?? refusal(of: new.queues) { return refusal }
        let next = schedule.timing.next(after: round.now.wall, since: round.now.wall, in: new.zone)
        guard next != nil || schedule.timing.boot != nil else {
            return ProtocolError(
                SpecError(
                    JSONPointer(["calendar"]), "The calendar has no time in the next 9 years; check its days."))
        }
        let owner = schedule.key.owner
        let limit = settings.limits.schedulesPerUser
        if old == nil, quotas.schedules[owner]?.jobs ?? 0 >= limit {
            return .busy(
                "There are \(limit) schedules already, as many as are allowed; remove one.", retryAfter: 60)
        }
        let more = schedule.storedSize.saturatingSubtracting(old?.storedSize ?? 0)
        guard try !makeRoom(for: more, of: owner, round) else { return nil }
        return .busy(
            "The schedule cannot be stored: \(quotas.use(of: owner, settings)); remove some.", retryAfter: 60)
    }

    private func find(
        _ key: ScheduleKey, _ id: RequestID, _ caller: Caller, _ round: Round
    ) throws(StoreError) -> Schedule? {
        if caller.isAdmin || caller.uid == key.owner, let row = try round.transaction.schedule(key) { return row }
        fail(id, .noSchedule(key))
        return nil
    }

    func removeSchedule(_ key: ScheduleKey, _ id: RequestID, _ caller: Caller, _ round: Round) throws(StoreError) {
        guard let row = try find(key, id, caller, round) else { return }
        try round.transaction.removeSchedule(key)
        quotas.moved(key.owner, from: row, to: nil)
        answer(id, .done)
    }

    func suspendSchedule(
        _ key: ScheduleKey, _ isSuspended: Bool, _ id: RequestID, _ caller: Caller, _ round: Round
    ) throws(StoreError) {
        guard let old = try find(key, id, caller, round) else { return }
        if old.isSuspended != isSuspended {
            var schedule = old
            schedule.isSuspended = isSuspended
            // Missed and waiting times are dropped: a late surprise would serve no user.
            schedule.doneUntil = round.now.wall
            schedule.skip(boot: schedules.boot)
            schedule.skipped += schedule.waiting.count
            schedule.waiting = []
            try store(schedule, was: old, round)
        }
        answer(id, .done)
    }

    func runSchedule(_ key: ScheduleKey, _ id: RequestID, _ caller: Caller, _ round: Round) throws(StoreError) {
        guard try find(key, id, caller, round) != nil else { return }
        pending.emit(.prepare(SchedulePreparation(key: key, time: round.now.wall, boot: nil, request: id)))
    }

    // MARK: - Times

    /// Stores a schedule with the time of its next check.
    private func store(
        _ schedule: Schedule, was old: Schedule?, spec: [UInt8]? = nil, _ round: Round
    ) throws(StoreError) {
        var schedule = schedule
        schedule.next = try next(of: schedule, round)
        schedule.version = (old?.version ?? 0) + 1
        try round.transaction.put(schedule, spec: spec)
        quotas.moved(schedule.key.owner, from: old, to: schedule)
        if let next = schedule.next { agenda.note(next) }
    }

    /// Returns the time of a schedule's next check.
    private func next(of schedule: Schedule, _ round: Round) throws(StoreError) -> Timestamp? {
        guard !schedule.isSuspended else { return nil }
        // Until the rules of its zone can be read, here or at another node, it stays due.
        guard let zone = zone(of: schedule) else { return round.now.wall.adding(seconds: 10) }
        if !schedule.waiting.isEmpty, try !isLastOpen(schedule, round) { return round.now.wall }
        if let boot = schedule.timing.boot { return boot == schedules.boot ? nil : schedules.startedAt }
        return schedule.timing.next(after: schedule.floor, since: schedule.setAt, in: zone)
    }

    /// Returns the rules of a schedule's zone, which are asked for if another node has set it.
    private func zone(of schedule: Schedule) -> ZoneRules? {
        if let zone = schedules.unknownZone(of: schedule) { pending.emit(.readZones([zone])) }
        return schedules.zone(of: schedule)
    }

    /// Returns whether the schedule's previous job is unfinished.
    private func isLastOpen(_ schedule: Schedule, _ round: Round) throws(StoreError) -> Bool {
        guard let job = schedule.lastJob, let row = try round.transaction.job(job) else { return false }
        return !row.state.isTerminal
    }

    /// Schedules per check.
    private static let atOnce = 64

    /// Advances due schedules and continues a rescan.
    func runSchedules(_ round: Round) throws(StoreError) {
        try rescan(round)
        // Due schedules stay due: other nodes may have room, and later this one catches up as `catchUp` says.
        guard experience.shortage == nil else { return }
        let due = try round.transaction.dueSchedules(at: round.now.wall, limit: Self.atOnce)
        for row in due { try advance(row, round) }
        if due.count == Self.atOnce { agenda.mustTickAgain = true }
    }

    private func rescan(_ round: Round) throws(StoreError) {
        guard case .after(let key) = schedules.rescan else { return }
        let rows = try round.transaction.schedules(after: key, limit: Self.atOnce)
        for row in rows where zone(of: row) != nil {
            var schedule = row
            // After the wall clock was set back, times are due again unless they were submitted or wait.
            schedule.doneUntil = min(schedule.doneUntil, round.now.wall)
            try store(schedule, was: row, round)
        }
        schedules.rescan = rows.count == Self.atOnce ? .after(rows.last?.key) : .none
    }

    private func plan(_ schedule: Schedule, _ round: Round) throws(StoreError) -> SchedulePlan? {
        guard let zone = zone(of: schedule) else { return nil }
        return SchedulePlan(
            schedule, in: zone, after: schedule.floor, isLastOpen: try isLastOpen(schedule, round),
            since: schedules.startedAt, boot: schedules.boot, at: round.now.wall)
    }

    /// Requests the next job of a schedule, or skips times without a job.
    private func advance(_ row: Schedule, _ round: Round) throws(StoreError) {
        guard let plan = try plan(row, round) else { return try store(row, was: row, round) }
        guard let time = plan.time else { return try store(plan.row, was: row, round) }
        // It is checked again once its job is made. A job that is made twice is submitted once, as its time is then over.
        var waiting = row
        waiting.next = nil
        try round.transaction.put(waiting, spec: nil)
        pending.emit(.prepare(SchedulePreparation(key: row.key, time: time, boot: plan.row.timing.boot, request: nil)))
    }

    /// Submits the job made from a schedule's spec, or reports why it could not be made.
    func submit(
        _ preparation: SchedulePreparation, _ made: Result<NewJob, ProtocolError>, _ round: Round
    ) throws(StoreError) {
        let key = preparation.key
        let row = try round.transaction.schedule(key)
        if let request = preparation.request {
            guard let row else { return fail(request, .noSchedule(key)) }
            guard phase == .serving else { return fail(request, .stopping) }
            let place = pending.hold()
            let answer = try submit(made, by: row, round)
            return pending.emit(.answer(request, .submitted([answer])), at: place)
        }
        guard let row, phase == .serving, experience.shortage == nil, let plan = try plan(row, round),
            let time = plan.time, time == preparation.time
        else {
            // The schedule or the room changed meanwhile; check it again.
            if let row { try store(row, was: row, round) }
            return
        }
        switch try submit(made, by: row, round) {
        case .success(let job):
            var schedule = plan.row
            schedule.lastJob = job.job
            try store(schedule, was: row, round)
        case .failure(let error) where error.code == ProtocolError.Code.storage.rawValue:
            // A time is not skipped because the store could not be read.
            var waiting = row
            waiting.next = round.now.wall.adding(seconds: 1)
            try round.transaction.put(waiting, spec: nil)
            if let next = waiting.next { agenda.note(next) }
        case .failure(let error):
            if experience.logBudget.admit(isTrouble: true, at: round.now.steady) != nil {
                log(
                    .warning,
                    "The schedule \(key.name) of user \(key.owner) submitted no job for \(time): "
                        + "\((error.data["reason"]?.string ?? error.message).prefix(300))")
            }
            try store(plan.withoutJob, was: row, round)
        }
    }

    private func submit(
        _ made: Result<NewJob, ProtocolError>, by schedule: Schedule, _ round: Round
    ) throws(StoreError) -> Result<SubmittedJob, ProtocolError> {
        let new: NewJob
        do throws(ProtocolError) { new = try made.get() } catch { return .failure(error) }
        return try submit([new], Caller(uid: schedule.key.owner, isAdmin: false, groups: schedule.groups), round)[0]
    }

    /// Checks the schedule of a job again whose end makes its next job due, or that was retried.
    func recheckSchedule(of job: JobRow, _ round: Round) throws(StoreError) {
        guard job.key?.utf8.starts(with: ScheduleKey.jobKeyPrefix.utf8) == true,
            let row = try round.transaction.schedule(ofLastJob: job.id),
            !job.state.isTerminal || !row.waiting.isEmpty
        else { return }
        try store(row, was: row, round)
    }
}
