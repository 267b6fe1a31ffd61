import JobModel

/// Schedules: setting and showing them, and submitting their jobs.
extension JobCore {
    /// Schedules that are popped, looked at or armed in one piece of work, while others wait.
    private static let atOnce = 64
    /// Schedules that are found to be due in one piece of work: no more is done with each than to remember it.
    private static let dueAtOnce = 1024

    // MARK: - Requests

    func setSchedule(_ new: NewSchedule, _ id: RequestID, _ caller: Caller) {
        guard !schedules.isBusy(new.key) else {
            return schedules.await(new.key) { [unowned self] in setSchedule(new, id, caller) }
        }
        let old = schedules[new.key]?.row
        var row = Schedule(
            key: new.key, timing: new.timing, catchUp: new.catchUp, overlap: new.overlap,
            isSuspended: new.isSuspended, setAt: now.wall, specSize: new.spec.size)
        // What an administrator sets for somebody else is not for the administrator's groups.
        row.groups = caller.uid == new.key.owner ? caller.groups : nil
        if let old {
            row.lastTime = old.lastTime
            row.lastJob = old.lastJob
            row.submitted = old.submitted
            // What waits was for the spec that is replaced.
            row.skipped = old.skipped + old.waiting.count
        }
        if let refusal = refusal(of: new, row, old) { return fail(id, refusal) }
        if let zone = new.timing.zone { schedules.use(new.zone, of: zone) }
        schedules.begin(new.key)
        write(.setSchedule(row, spec: new.spec)) { [unowned self] result in
            changed(row, result, id)
        }
    }

    /// A change of a schedule that was asked for is stored, or is not.
    private func changed(_ row: Schedule, _ result: Result<StoreWritten, StoreError>, _ id: RequestID) {
        switch result {
        case .failure(let error):
            fail(id, CoreError(error))
        case .success:
            schedules.put(row, isLastOpen: schedules[row.key]?.isLastOpen ?? false, at: now.wall)
            show(row.key, id)
        }
        endChange(of: row.key)
    }

    private func endChange(of key: ScheduleKey) {
        for next in schedules.end(key) { next() }
    }

    private func refusal(of new: NewSchedule, _ row: Schedule, _ old: Schedule?) -> CoreError? {
        guard phase == .serving else { return .stopping }
        if let refusal = refusalWithoutRoom { return refusal }
        if let refusal = refusal(of: new.queues) { return refusal }
        guard new.timing.next(after: now.wall, since: now.wall, in: new.zone) != nil else {
            return CoreError(
                .invalid(JSONPointer(["calendar"])), "The calendar has no time in the next 9 years; check its days.")
        }
        let owner = new.key.owner
        let limit = settings.limits.schedulesPerUser
        if old == nil, schedules.count(of: owner) + schedules.beginning(of: owner) >= limit {
            return CoreError(
                .busy(retryAfter: 60), "There are \(limit) schedules already, as many as are allowed; remove one.")
        }
        let stored = storedBytes(of: owner).saturatingAdding(row.storedSize)
            .saturatingSubtracting(old?.storedSize ?? 0)
        guard stored > settings.storedPerUser else { return nil }
        return CoreError(
            .busy(retryAfter: 60),
            "Your jobs and schedules take up \(stored) bytes, and \(settings.storedPerUser) are allowed; remove some.")
    }

    /// Bytes that jobs and schedules of one owner take up.
    func keptBytes(of owner: UInt32) -> Int64 {
        counters.bytes(of: owner).saturatingAdding(schedules.bytes(of: owner))
    }

    /// The same with those that are being submitted.
    func storedBytes(of owner: UInt32) -> Int64 {
        keptBytes(of: owner).saturatingAdding(submitting.bytes(of: owner))
    }

    /// Calls `body` with a schedule that `caller` may see once nothing else changes it.
    private func withSchedule(
        _ key: ScheduleKey, _ id: RequestID, _ caller: Caller, _ body: @escaping (Schedule) -> Void
    ) {
        guard phase == .serving else { return fail(id, .stopping) }
        guard caller.isAdmin || caller.uid == key.owner, schedules[key] != nil || schedules.isBusy(key) else {
            return fail(id, .noSchedule(key))
        }
        guard !schedules.isBusy(key) else {
            return schedules.await(key) { [unowned self] in withSchedule(key, id, caller, body) }
        }
        guard let row = schedules[key]?.row else { return fail(id, .noSchedule(key)) }
        body(row)
    }

    func showSchedule(_ key: ScheduleKey, _ id: RequestID, _ caller: Caller) {
        withSchedule(key, id, caller) { [unowned self] _ in show(key, id) }
    }

    private func show(_ key: ScheduleKey, _ id: RequestID) {
        guard finds.begin(for: key.owner, else: { [unowned self] in show(key, id) }) else { return }
        read(.schedule(key)) { [unowned self] result in
            switch result {
            case .success(.schedules(let rows)):
                if let row = rows.first { answer(id, .schedule(view(row))) } else { fail(id, .noSchedule(key)) }
            default: fail(id, Self.error(of: result))
            }
            endFind(for: key.owner)
        }
    }

    private func view(_ row: StoredSchedule) -> ScheduleView {
        var row = row
        switch row.schedule.lastJob.flatMap({ table.known($0) }) {
        case .active(let entry): row.lastState = entry.job.state
        case .left(let job): row.lastState = job.state
        case .removed: row.lastState = nil
        case nil: break
        }
        return ScheduleView(stored: row, next: schedules[row.schedule.key]?.next)
    }

    /// The schedules that `caller` may see, in pages.
    func listSchedules(after key: ScheduleKey?, of owner: UInt32?, limit: Int, _ id: RequestID, _ caller: Caller) {
        let owner = caller.isAdmin ? owner : caller.uid
        let begins = finds.begin(for: caller.uid) { [unowned self] in
            listSchedules(after: key, of: owner, limit: limit, id, caller)
        }
        guard begins else { return }
        read(.schedules(after: key, owner: owner, limit: limit + 1)) { [unowned self] result in
            if case .success(.schedules(let rows)) = result {
                let shown = rows.prefix(limit)
                let hasMore = rows.count > limit || StoredSchedule.isFull(rows)
                answer(id, .schedules(shown.map { view($0) }, next: hasMore ? shown.last?.schedule.key : nil))
            } else {
                fail(id, Self.error(of: result))
            }
            endFind(for: caller.uid)
        }
    }

    func removeSchedule(_ key: ScheduleKey, _ id: RequestID, _ caller: Caller) {
        withSchedule(key, id, caller) { [unowned self] _ in
            schedules.begin(key)
            write(.removeSchedule(key)) { [unowned self] result in
                switch result {
                case .failure(let error): fail(id, CoreError(error))
                case .success:
                    schedules.remove(key)
                    answer(id, .done)
                }
                endChange(of: key)
            }
        }
    }

    func suspendSchedule(_ key: ScheduleKey, _ isSuspended: Bool, _ id: RequestID, _ caller: Caller) {
        withSchedule(key, id, caller) { [unowned self] row in
            guard row.isSuspended != isSuspended else { return show(key, id) }
            var row = row
            row.isSuspended = isSuspended
            // What it misses is dropped, as is what waits: nobody wants to be surprised by that later.
            row.doneUntil = now.wall
            row.skipped += row.waiting.count
            row.waiting = []
            schedules.begin(key)
            write(.advance(row, nil)) { [unowned self] result in changed(row, result, id) }
        }
    }

    func runSchedule(_ key: ScheduleKey, _ id: RequestID, _ caller: Caller) {
        withSchedule(key, id, caller) { [unowned self] _ in
            guard finds.begin(for: key.owner, else: { [unowned self] in runSchedule(key, id, caller) }) else { return }
            read(.schedule(key)) { [unowned self] result in
                submit(by: key, result, id) { [unowned self] in endFind(for: key.owner) }
            }
        }
    }

    /// `isRead` is called once the spec is out of memory, but for what the job keeps of it.
    private func submit(
        by key: ScheduleKey, _ result: Result<StoreRows, StoreError>, _ id: RequestID, _ isRead: @escaping () -> Void
    ) {
        guard case .success(.schedules(let rows)) = result, let row = rows.first, let spec = row.spec else {
            if case .success(.schedules) = result {
                fail(id, .noSchedule(key))
            } else {
                fail(id, Self.error(of: result))
            }
            return isRead()
        }
        let written = ScheduledSpec(
            spec: spec, size: row.schedule.specSize, schedule: key, time: now.wall, hasKey: false)
        check(written) { [unowned self] result in
            submit(result, by: key, id)
            isRead()
        }
    }

    private func submit(_ result: Result<NewJob, CoreError>, by key: ScheduleKey, _ id: RequestID) {
        do throws(CoreError) {
            let new = try admit(result, of: key)
            let job = job(new, of: key)
            submit(job, by: .submit([job])) { [unowned self] result in
                switch result {
                case .failure(let error): fail(id, CoreError(error))
                case .success(let submission):
                    let caller = Caller(uid: key.owner, isAdmin: false)
                    switch submission.map({ admitted($0, job, new, caller) }) {
                    case .success(let submitted): answer(id, .submitted([.success(submitted)]))
                    case .failure(let error): fail(id, error)
                    case nil: fail(id, .stopping)
                    }
                }
            }
        } catch { fail(id, error) }
    }

    // MARK: - Jobs

    /// A schedule's job whose spec was checked, admitted like any other.
    private func admit(_ checked: Result<NewJob, CoreError>, of key: ScheduleKey) throws(CoreError) -> NewJob {
        let new = try checked.get()
        if let refusal = refusal(of: new, present(of: key.owner), jobs: 0, bytes: 0) { throw refusal }
        return new
    }

    private func job(_ new: NewJob, of key: ScheduleKey) -> Job {
        var job = Job(submitting: new.spec, owner: key.owner, at: now.wall)
        job.groups = schedules[key]?.row.groups
        job.host = ConcurrencyKey(hostlessStepOf: job)?.name ?? new.host
        return job
    }

    /// Stores a job; `done` gets what became of it, after it was counted.
    private func submit(
        _ job: Job, by write: StoreWrite, _ done: @escaping (Result<Submission?, StoreError>) -> Void
    ) {
        let owner = Caller(uid: job.owner, isAdmin: false)
        submitting.add(1, bytes: job.storedSize, of: job.owner)
        self.write(write) { [unowned self] result in
            submitting.add(-1, bytes: -job.storedSize, of: job.owner)
            switch result {
            case .success(.submitted(let submissions)):
                count(submissions, [job], owner)
                done(.success(submissions.first))
            case .success: done(.success(nil))
            case .failure(let error): done(.failure(error))
            }
        }
    }

    // MARK: - Times

    /// Notices that the wall clock was set back, by how it stands to the clock that nobody sets.
    func noticeClock() {
        let ahead = now.wall.milliseconds.saturatingSubtracting(now.monotonic / 1_000_000)
        if let before = wallAhead, ahead < before.saturatingSubtracting(500) { schedules.outdate() }
        wallAhead = ahead
        // What passes from now on passes while this daemon runs.
        recoveredAt = min(recoveredAt, now.wall)
    }

    func zonesRead(_ zones: [String: ZoneRules]) {
        for (name, rules) in zones { schedules.use(rules, of: name) }
        for name in schedules.zoneNames where schedules.zones[name] == nil {
            log(
                .error,
                "There are no rules of the zone \(name), so its schedules wait; install tzdata and reload the daemon.")
        }
        schedules.outdate()
    }

    /// Has the rules of all zones read that schedules go by.
    func readZones() {
        let names = schedules.zoneNames.filter { $0 != "UTC" }
        if !names.isEmpty { emit(.readZones(names)) }
    }

    /// Deals with the schedules whose time has come, a few at a time.
    func runSchedules() {
        guard phase == .serving else { return }
        var hasMore = schedules.armOutdated(Self.atOnce, at: now.wall)
        if schedules.popDue(Self.dueAtOnce, at: now.wall) { hasMore = true }
        // What cannot be stored now is looked at when that works again.
        guard storageFailure == nil, shortage == nil else { return }
        var left = Self.atOnce
        while left > 0, let key = schedules.popReady(where: advancing.admits) {
            left -= 1
            advance(key)
        }
        if hasMore || left == 0 { yield() }
    }

    /// Submits the next job of a schedule, or passes over the times for which there is none.
    private func advance(_ key: ScheduleKey) {
        guard let entry = schedules[key], let zone = schedules.zone(of: entry.row) else { return }
        guard !schedules.isBusy(key) else {
            return schedules.await(key) { [unowned self] in schedules.makeReady(key) }
        }
        let plan = SchedulePlan(
            entry.row, in: zone, after: schedules.floor(of: entry.row), isLastOpen: entry.isLastOpen,
            since: recoveredAt, at: now.wall)
        guard plan.isChange else { return schedules.put(plan.row, isLastOpen: entry.isLastOpen, at: now.wall) }
        schedules.begin(key)
        guard let time = plan.time else { return store(plan.row) }
        advancing.add(plan.row)
        read(.schedule(key)) { [unowned self] result in
            guard phase == .serving else { return endAdvance(plan) }
            guard case .success(.schedules(let rows)) = result else {
                log(.error, "The schedule \(key.name) cannot be read: \(Self.error(of: result).message)")
                return advanceLater(plan)
            }
            guard let spec = rows.first?.spec else {
                expect(rows.isEmpty, "The schedule \(key.name) was read without its spec.")
                return endAdvance(plan)
            }
            let written = ScheduledSpec(
                spec: spec, size: plan.row.specSize, schedule: key, time: time, hasKey: true)
            check(written) { [unowned self] in submit(plan, time, $0) }
        }
    }

    private func submit(_ plan: SchedulePlan, _ time: Timestamp, _ checked: Result<NewJob, CoreError>) {
        guard phase == .serving else { return endAdvance(plan) }
        let key = plan.row.key
        do throws(CoreError) {
            let new = try admit(checked, of: key)
            let job = job(new, of: key)
            submit(job, by: .advance(plan.row, job)) { [unowned self] result in
                guard case .success(let submission) = result else { return advanceLater(plan) }
                submitted(plan, time, submission, job, new)
            }
        } catch {
            if case .storage = error.code { return advanceLater(plan) }
            logSkipped(key, time, error.message)
            passOver(plan)
        }
    }

    /// The time of a plan has no job.
    private func passOver(_ plan: SchedulePlan) {
        advancing.remove(plan.row)
        store(plan.withoutJob)
    }

    private func endAdvance(_ plan: SchedulePlan) {
        advancing.remove(plan.row)
        endChange(of: plan.row.key)
    }

    /// What could not be read or stored is tried again.
    private func advanceLater(_ plan: SchedulePlan) {
        makeReadyLater(plan.row.key)
        endAdvance(plan)
    }

    private func makeReadyLater(_ key: ScheduleKey) {
        advancing.pause(key.owner)
        if !timers.isSet(.schedules) { setTimer(.schedules, in: 1) }
        schedules.makeReady(key)
    }

    private func submitted(
        _ plan: SchedulePlan, _ time: Timestamp, _ submission: Submission?, _ job: Job, _ new: NewJob
    ) {
        let key = plan.row.key
        guard let submission else { return endAdvance(plan) }
        switch admitted(submission, job, new, Caller(uid: key.owner, isAdmin: false)) {
        case .success(let submitted):
            var row = plan.row
            row.lastJob = submitted.job
            schedules.put(row, isLastOpen: !submitted.state.isTerminal, at: now.wall)
            endAdvance(plan)
        case .failure(let error):
            // A job of an earlier schedule of this name, or one from before there were schedules, has the key.
            logSkipped(key, time, error.message)
            passOver(plan)
        }
    }

    /// Stores what became of a schedule without a job.
    private func store(_ row: Schedule) {
        let key = row.key
        write(.advance(row, nil)) { [unowned self] result in
            switch result {
            case .success: schedules.put(row, isLastOpen: schedules[key]?.isLastOpen ?? false, at: now.wall)
            case .failure(let error):
                storageFailed(error)
                makeReadyLater(key)
            }
            endChange(of: key)
        }
    }

    private func logSkipped(_ key: ScheduleKey, _ time: Timestamp, _ reason: String) {
        guard jobLogBudget.admit(at: now.monotonic) != nil else { return }
        log(
            .warning,
            "The schedule \(key.name) of user \(key.owner) submitted no job for \(time): \(reason.prefix(300))")
    }
}

extension CoreError {
    static func noSchedule(_ key: ScheduleKey) -> CoreError {
        CoreError(.notFound, "There is no schedule \"\(key.name)\", or it is not yours; list yours to see their names.")
    }
}
