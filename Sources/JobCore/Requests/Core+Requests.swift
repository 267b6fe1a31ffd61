import JobModel

/// Client requests.
extension Core {
    func handle(
        _ request: CoreRequest, _ id: RequestID, _ caller: Caller, _ round: Round
    ) throws(StoreError) {
        guard phase == .serving else { return refuse(request, id) }
        switch request {
        case .submit(let jobs): try submit(jobs, caller, round) { answer(id, .submitted($0)) }
        case .change(let job, let action): try change(job, action, id, caller, round)
        case .changeAll(let jobs, let action, let onlyCounts):
            try change(jobs, action, onlyCounts: onlyCounts, id, caller, round)
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
        pending.subscribed.append(id)
    }

    private func wait(for jobs: [JobID], _ id: RequestID, _ caller: Caller, _ round: Round) throws(StoreError) {
        var open: Set<Waits.Event> = []
        for job in jobs {
            guard let row = try find(job, caller, round) else { return fail(id, .noJob(job)) }
            if !row.state.isTerminal { open.insert(.end(job)) }
        }
        pending.waits.append(.begin(id, open, .done))
    }

    // MARK: - Submitting

    /// Submits jobs and passes their answers to `answered`, before the first notifications of the jobs' watches follow.
    func submit(
        _ requested: [NewJob], _ caller: Caller, _ round: Round,
        _ answered: ([Result<SubmittedJob, CoreError>]) -> Void
    ) throws(StoreError) {
        var answers: [Result<SubmittedJob, CoreError>] = []
        answers.reserveCapacity(requested.count)
        var rows: [NewJobRow] = []
        rows.reserveCapacity(requested.count)
        /// The index in `requested` of each row.
        var indexes: [Int] = []
        indexes.reserveCapacity(requested.count)
        // First, as it must not remove a job that one of these waits for.
        let size = requested.reduce(Int64(0)) { $0.saturatingAdding($1.document.size + JobRow.fixedSize) }
        _ = try makeRoom(for: size, of: caller.uid, round)
        var allowance = Allowance(quotas, settings, owner: caller.uid)
        for (index, new) in requested.enumerated() {
            if let refusal = try refusal(of: new, allowance, round) {
                answers.append(.failure(refusal))
                continue
            }
            var row = JobRow(
                new.terms, owner: caller.uid, groups: caller.groups, parent: nil, deadline: nil,
                specSize: Int(clamping: new.document.size), at: round.now)
            if let node = settings.node, row.node == nil, new.uploads { row.node = node }
            let new = NewJobRow(row: row, document: new.document, digest: new.digest)
            allowance.take(new.row.size)
            rows.append(new)
            indexes.append(index)
            answers.append(.failure(.stopping))
        }
        let inserted = try round.transaction.insert(rows)
        for (offset, index) in indexes.enumerated() {
            answers[index] = try answer(
                to: inserted[offset], rows[offset].row.state, requested[index].subscription, caller, round)
        }
        answered(answers)
        for (offset, index) in indexes.enumerated() {
            guard case .created(let id) = inserted[offset] else { continue }
            rows[offset].row.id = id
            try created(rows[offset].row, requested[index], caller, round)
        }
    }

    private func answer(
        to inserted: Inserted, _ state: JobState, _ subscription: SubscriptionID?, _ caller: Caller, _ round: Round
    ) throws(StoreError) -> Result<SubmittedJob, CoreError> {
        switch inserted {
        case .created(let id): return .success(SubmittedJob(job: id, state: state, isCreated: true))
        case .taken(let earlier, isSame: false):
            let message = "The key belongs to job \(earlier), which has another spec; use another key."
            return .failure(CoreError(.keyConflict(earlier), message))
        case .taken(let earlier, isSame: true):
            let state = try round.transaction.job(earlier)?.state ?? .queued
            if let subscription, !state.isTerminal {
                subscribe(subscription, WatchScope(.jobs([earlier])), caller)
            }
            return .success(SubmittedJob(job: earlier, state: state, isCreated: false))
        }
    }

    private func created(_ row: JobRow, _ new: NewJob, _ caller: Caller, _ round: Round) throws(StoreError) {
        pending.count(row.owner) { $0.submitted += 1 }
        try self.inserted(row, round)
        for target in new.jobs { try depend(row.id, on: target.id, round) }
        if let outcome = new.immediate, row.state == .queued { agenda.immediate[row.id] = outcome }
        if let subscription = new.subscription { subscribe(subscription, WatchScope(.jobs([row.id])), caller) }
    }

    // MARK: - Refusals

    /// Returns why a job is not admitted.
    private func refusal(of new: NewJob, _ allowance: Allowance, _ round: Round) throws(StoreError) -> CoreError? {
        if let refusal = refusalWithoutRoom { return refusal }
        let queue = new.terms.lasting.queue
        guard takesJobs(queue) else {
            return refusal(of: [NamedQueue(name: queue, pointer: JSONPointer(["queue"]))])
        }
        if let refusal = refusal(of: new.queues) { return refusal }
        for job in new.jobs where try target(job.id, of: allowance.owner, round) == nil { return .noJob(job) }
        guard allowance.jobs > 0 else { return Self.tooManyWaiting }
        let size = new.document.size + JobRow.fixedSize
        guard size > allowance.bytes else { return nil }
        let stored = settings.storedPerUser.saturatingSubtracting(allowance.bytes).saturatingAdding(size)
        return CoreError(
            .busy(retryAfter: 60),
            "Your jobs take up \(stored) bytes, and \(settings.storedPerUser) are allowed; remove or cancel some.")
    }

    /// The most finished jobs that one input removes for the room of another.
    private static let mostRemoved = 64

    /// Removes an owner's oldest finished jobs if no more bytes can be stored otherwise; returns whether they can.
    /// What was done and cannot be asked for again `mayExceed` the quota by one body, until later rounds have removed more.
    func makeRoom(
        for bytes: Int64, of owner: UInt32, mayExceed: Bool = false, _ round: Round
    ) throws(StoreError) -> Bool {
        func excess() -> Int64 {
            quotas.stored(of: owner).saturatingAdding(bytes).saturatingSubtracting(settings.storedPerUser)
        }
        if excess() <= 0 { return true }
        // None is removed if that frees too little.
        guard excess() <= quotas.holding(of: owner).finishedBytes else { return false }
        /// Bytes of jobs that later rounds remove with their children.
        var promised: Int64 = 0
        for row in try round.transaction.finished(owner: owner, before: .distantFuture, limit: Self.mostRemoved) {
            // Jobs with children that are being removed free their room later.
            if row.children > 0, agenda.hasWork { continue }
            if try dispose(row, round) != nil { promised += row.size }
            if excess() <= promised { break }
        }
        guard mayExceed, excess() > 0, excess() <= Int64(settings.limits.body) else { return excess() <= 0 }
        agenda.hasExcess = true
        return true
    }

    /// Why requests that need disk space are refused.
    var refusalWithoutRoom: CoreError? {
        experience.shortage.map { CoreError(.storage, "Nothing can be stored at present: \($0)") }
    }

    /// Returns why an owner may have no more waiting jobs.
    func refusalOfWaiting(_ owner: UInt32) -> CoreError? {
        Allowance(quotas, settings, owner: owner).jobs > 0 ? nil : Self.tooManyWaiting
    }

    private static let tooManyWaiting = CoreError(
        .busy(retryAfter: 1), "Too many jobs are waiting; try again when some have run.")

    /// Returns why `queues` cannot be used.
    func refusal(of queues: [NamedQueue]) -> CoreError? {
        queues.first { !takesJobs($0.name) }.map { .noQueue($0, among: scheduler.names.lazy.filter(takesJobs)) }
    }
}

/// The jobs and bytes that an owner may still submit.
private struct Allowance {
    let owner: UInt32
    private(set) var jobs: Int
    private(set) var bytes: Int64

    init(_ quotas: Quotas, _ settings: CoreSettings, owner: UInt32) {
        self.owner = owner
        let limits = settings.limits
        jobs = min(
            limits.queuedJobs.saturatingSubtracting(quotas.all.waiting),
            limits.queuedJobsPerUser.saturatingSubtracting(quotas.holding(of: owner).waiting))
        bytes = settings.storedPerUser.saturatingSubtracting(quotas.stored(of: owner))
    }

    /// Subtracts a submitted job of this many bytes.
    mutating func take(_ size: Int64) {
        jobs -= 1
        bytes = bytes.saturatingSubtracting(size)
    }
}
