import JobModel

/// What callers ask for.
extension Core {
    func handle(
        _ request: CoreRequest, _ id: RequestID, _ caller: Caller, _ round: Round
    ) throws(StoreError) {
        guard phase == .serving else { return refuse(request, id) }
        switch request {
        case .submit(let jobs): try submit(jobs, id, caller, round)
        case .cancel(let job): try cancel(job, id, caller, round)
        case .retry(let job, let point): try retry(job, from: point, id, caller, round)
        case .remove(let job): try remove(job, id, caller, round)
        case .wait(let jobs): try wait(for: jobs, id, caller, round)
        case .watch(let scope, let subscription):
            subscribe(subscription, scope, caller)
            answer(id, .done)
        case .setQueue(let name, let change): try setQueue(name, change, id, caller, round)
        case .setSchedule(let new): try setSchedule(new, id, caller, round)
        case .removeSchedule(let key): try removeSchedule(key, id, caller, round)
        case .runSchedule(let key): try runSchedule(key, id, caller, round)
        case .suspendSchedule(let key, let isSuspended): try suspendSchedule(key, isSuspended, id, caller, round)
        case .probe: answer(id, .done)
        }
    }

    private func refuse(_ request: CoreRequest, _ id: RequestID) {
        switch request {
        case .submit(let jobs): answer(id, .submitted(jobs.map { _ in .failure(.stopping) }))
        case .probe: answer(id, .done)
        default: fail(id, .stopping)
        }
    }

    func answer(_ id: RequestID, _ answer: CoreAnswer) { pending.emit(.answer(id, answer)) }
    func fail(_ id: RequestID, _ error: CoreError) { answer(id, .failed(error)) }

    private func subscribe(_ id: SubscriptionID, _ scope: WatchScope, _ caller: Caller) {
        subscriptions.add(id, scope, caller)
        pending.subscribe(id)
    }

    private func wait(for jobs: [JobID], _ id: RequestID, _ caller: Caller, _ round: Round) throws(StoreError) {
        var open: Set<Waits.Event> = []
        for job in jobs {
            guard let row = try find(job, caller, round) else { return fail(id, .noJob(job)) }
            if !row.state.isTerminal { open.insert(.end(job)) }
        }
        answer(id, .done)
        pending.change(.begin(id, open, .over))
    }

    // MARK: - Submitting

    private func submit(
        _ requested: [NewJob], _ id: RequestID, _ caller: Caller, _ round: Round
    ) throws(StoreError) {
        var answers: [Result<SubmittedJob, CoreError>] = []
        answers.reserveCapacity(requested.count)
        var rows: [NewJobRow] = []
        var indexes: [Int] = []
        var bytes: Int64 = 0
        for (index, new) in requested.enumerated() {
            if let refusal = refusal(of: new, caller.uid, jobs: rows.count, bytes: bytes) {
                answers.append(.failure(refusal))
                continue
            }
            let new = row(of: new, owner: caller.uid, groups: caller.groups, round)
            bytes = bytes.saturatingAdding(new.row.size)
            rows.append(new)
            indexes.append(index)
            answers.append(.failure(.stopping))
        }
        var created: [(JobRow, NewJob)] = []
        for (offset, inserted) in try round.transaction.insert(rows).enumerated() {
            let index = indexes[offset]
            answers[index] = try answered(inserted, rows[offset].row, requested[index], caller, &created, round)
        }
        answer(id, .submitted(answers))
        // Behind the answer, as the first notifications of the jobs' watches may follow from here.
        for (row, new) in created { try self.created(row, new, caller, round) }
    }

    private func answered(
        _ inserted: Inserted, _ row: JobRow, _ new: NewJob, _ caller: Caller, _ created: inout [(JobRow, NewJob)],
        _ round: Round
    ) throws(StoreError) -> Result<SubmittedJob, CoreError> {
        switch inserted {
        case .created(let id):
            var row = row
            row.id = id
            created.append((row, new))
            return .success(SubmittedJob(job: id, state: row.state, isCreated: true))
        case .taken(let earlier, isSame: false):
            let message = "The key belongs to job \(earlier), which has another spec; use another key."
            return .failure(CoreError(.keyConflict(earlier), message))
        case .taken(let earlier, isSame: true):
            let state = try round.transaction.job(earlier)?.state ?? .queued
            if let subscription = new.subscription, !state.isTerminal {
                subscribe(subscription, WatchScope(.jobs([earlier])), caller)
            }
            return .success(SubmittedJob(job: earlier, state: state, isCreated: false))
        }
    }

    private func created(_ row: JobRow, _ new: NewJob, _ caller: Caller, _ round: Round) throws(StoreError) {
        pending.count(row.owner) { $0.submitted += 1 }
        try inserted(row, round)
        if let outcome = new.immediate, row.state == .queued { agenda.remember(outcome, of: row.id) }
        if let subscription = new.subscription { subscribe(subscription, WatchScope(.jobs([row.id])), caller) }
    }

    /// A new job as it begins.
    func row(of new: NewJob, owner: UInt32, groups: CallerGroups?, _ round: Round) -> NewJobRow {
        NewJobRow(
            row: JobRow(
                new.terms, owner: owner, groups: groups, parent: nil, deadline: nil,
                specSize: Int(clamping: new.document.size), at: round.now), document: new.document, digest: new.digest)
    }

    /// Submits the job of a schedule; gives its answer.
    func submit(
        _ new: NewJob, by key: ScheduleKey, groups: CallerGroups?, _ round: Round
    ) throws(StoreError) -> Result<SubmittedJob, CoreError> {
        if let refusal = refusal(of: new, key.owner, jobs: 0, bytes: 0) { return .failure(refusal) }
        let inserted = row(of: new, owner: key.owner, groups: groups, round)
        let caller = Caller(uid: key.owner, isAdmin: false)
        var created: [(JobRow, NewJob)] = []
        guard let first = try round.transaction.insert([inserted]).first else { return .failure(.stopping) }
        let answer = try answered(first, inserted.row, new, caller, &created, round)
        for (row, new) in created { try self.created(row, new, caller, round) }
        return answer
    }

    // MARK: - Refusals

    /// Why a job is not admitted, with `jobs` of `bytes` before it in the same request.
    private func refusal(of new: NewJob, _ owner: UInt32, jobs: Int, bytes: Int64) -> CoreError? {
        if let refusal = refusalWithoutRoom { return refusal }
        let queue = NamedQueue(name: new.terms.queue, pointer: JSONPointer(["queue"]))
        if let refusal = refusal(of: [queue] + new.queues) { return refusal }
        if let refusal = refusal(ofWaiting: jobs + 1, of: owner) { return refusal }
        let size = new.document.size + JobRow.fixedSize
        let stored = quotas.stored(of: owner).saturatingAdding(bytes).saturatingAdding(size)
        guard stored > settings.storedPerUser else { return nil }
        return CoreError(
            .busy(retryAfter: 60),
            "Your jobs take up \(stored) bytes, and \(settings.storedPerUser) are allowed; remove some finished ones.")
    }

    /// Why nothing that takes room on the disk is accepted.
    var refusalWithoutRoom: CoreError? {
        experience.shortage.map { CoreError(.storage, "Nothing can be stored at present: \($0)") }
    }

    /// Why so many further jobs may not wait for their turn.
    func refusal(ofWaiting count: Int, of owner: UInt32) -> CoreError? {
        let limits = settings.limits
        guard
            quotas.all.waiting + count > limits.queuedJobs
                || quotas.holding(of: owner).waiting + count > limits.queuedJobsPerUser
        else { return nil }
        return CoreError(.busy(retryAfter: 1), "Too many jobs are waiting; try again when some have run.")
    }

    /// Why something is not accepted that names `queues`.
    func refusal(of queues: [NamedQueue]) -> CoreError? {
        queues.first { !takesJobs($0.name) }.map { .noQueue($0, among: scheduler.names.lazy.filter(takesJobs)) }
    }
}
