import JobModel

/// Client requests.
extension Core {
    func handle(
        _ request: CoreRequest, _ id: RequestID, _ caller: Caller, _ round: Round
    ) throws(StoreError) {
        guard phase == .serving else { return refuse(request, id) }
        switch request {
        case .submit(let jobs): try submit(jobs, id, caller, round)
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
    func fail(_ id: RequestID, _ error: ProtocolError) { answer(id, .failed(error)) }

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

    private func submit(_ jobs: [NewJob], _ id: RequestID, _ caller: Caller, _ round: Round) throws(StoreError) {
        // The answer comes before the first notifications of the jobs' watches.
        let place = pending.hold()
        pending.emit(.answer(id, .submitted(try submit(jobs, caller, round))), at: place)
    }

    func submit(
        _ jobs: [NewJob], _ caller: Caller, _ round: Round
    ) throws(StoreError) -> [Result<SubmittedJob, ProtocolError>] {
        var size: Int64 = 0
        // Jobs that these wait for, or that have their keys.
        var spared: Set<JobID> = []
        for new in jobs {
            spared.formUnion(new.jobs.map(\.id))
            if let holder = try holder(ofKeyOf: new, caller, round) {
                spared.insert(holder.job)
            } else {
                size = size.saturatingAdding(new.document.size + JobRow.fixedSize)
            }
        }
        _ = try makeRoom(for: size, of: caller.uid, sparing: spared, round)
        return try jobs.map { (new) throws(StoreError) in try submit(new, caller, round) }
    }

    private func holder(ofKeyOf new: NewJob, _ caller: Caller, _ round: Round) throws(StoreError) -> KeyHolder? {
        try new.terms.lasting.key.flatMap { (key) throws(StoreError) in
            try round.transaction.holder(ofKey: key, owner: caller.uid)
        }
    }

    /// Submits a job for which there is room, if any, unless a job with its key is there.
    private func submit(
        _ new: NewJob, _ caller: Caller, _ round: Round
    ) throws(StoreError) -> Result<SubmittedJob, ProtocolError> {
        if let holder = try holder(ofKeyOf: new, caller, round) {
            guard holder.digest == new.digest else {
                let message = "The key belongs to job \(holder.job), which has another spec; use another key."
                return .failure(.keyConflict(holder.job, message))
            }
            let state = try round.transaction.job(holder.job)?.state ?? .queued
            if let subscription = new.subscription, !state.isTerminal {
                subscribe(subscription, WatchScope(.jobs([holder.job])), caller)
            }
            return .success(SubmittedJob(job: holder.job, state: state, isCreated: false))
        }
        if let refusal = try refusal(of: new, caller.uid, round) { return .failure(refusal) }
        var job = NewJobRow(
            row: JobRow(
                new.terms, owner: caller.uid, groups: caller.groups, parent: nil, deadline: nil,
                specSize: Int(clamping: new.document.size), at: round.now),
            document: new.document, digest: new.digest)
        if let node = settings.node, job.row.node == nil, new.uploads { job.row.node = node }
        let id = try round.transaction.insert(job)
        job.row.id = id
        experience.count(caller.uid) { $0.submitted += 1 }
        try inserted(job.row, round)
        for target in new.jobs { try depend(id, on: target.id, round) }
        if let outcome = new.immediate, job.row.state == .queued { agenda.immediate[id] = outcome }
        if let subscription = new.subscription { subscribe(subscription, WatchScope(.jobs([id])), caller) }
        return .success(SubmittedJob(job: id, state: job.row.state, isCreated: true))
    }

    // MARK: - Refusals

    /// Returns why a job is not admitted.
    private func refusal(of new: NewJob, _ owner: UInt32, _ round: Round) throws(StoreError) -> ProtocolError? {
        if let refusal = refusalWithoutRoom { return refusal }
        let queue = new.terms.lasting.queue
        guard scheduler.takesJobs(queue) else {
            return refusal(of: [(queue, JSONPointer(["queue"]))])
        }
        if let refusal = refusal(of: new.queues) { return refusal }
        for job in new.jobs where try target(job.id, of: owner, round) == nil { return .noJob(job) }
        if let refusal = refusalOfWaiting(owner) { return refusal }
        let size = new.document.size + JobRow.fixedSize
        guard quotas.stored(of: owner).saturatingAdding(size) > settings.storedPerUser else { return nil }
        return .busy(
            "There is no room for this job of \(size) bytes: \(quotas.use(of: owner, settings)); remove or cancel some.",
            retryAfter: 60)
    }

    /// The most finished jobs that one input removes for the room of another.
    private static let mostRemoved = 512

    /// Removes an owner's oldest finished jobs except `spared` ones if no more bytes can be stored otherwise; returns whether
    /// they can. What was done and cannot be asked for again `mayExceed` the quota by one body, until later rounds have
    /// removed more.
    func makeRoom(
        for bytes: Int64, of owner: UInt32, sparing spared: Set<JobID> = [], mayExceed: Bool = false, _ round: Round
    ) throws(StoreError) -> Bool {
        func excess() -> Int64 {
            quotas.stored(of: owner).saturatingAdding(bytes).saturatingSubtracting(settings.storedPerUser)
        }
        let needed = excess()
        if needed <= 0 { return true }
        guard needed <= quotas.holding(of: owner).finishedBytes else { return false }
        let finished = try round.transaction.finished(
            owner: owner, before: .distantFuture, limit: Self.mostRemoved)
        // Jobs with children that are being removed free their room later.
        var (removed, freed, hasWork): ([JobRow], Int64, Bool) = ([], 0, agenda.hasWork)
        for row in finished where freed < needed && !spared.contains(row.id) && !(row.children > 0 && hasWork) {
            removed.append(row)
            freed += row.size
            hasWork = hasWork || row.children > 0
        }
        // None is removed if that frees too little: finished children of unfinished jobs count, but stay.
        guard freed >= needed || hasWork || mayExceed || finished.count == Self.mostRemoved else { return false }
        for row in removed { _ = try dispose(row, round) }
        guard mayExceed, excess() > 0, excess() <= Int64(settings.limits.body) else { return excess() <= 0 }
        agenda.hasExcess = true
        return true
    }

    /// Why requests that need disk space are refused.
    var refusalWithoutRoom: ProtocolError? {
        experience.shortage.map { ProtocolError(.storage, "Nothing can be stored at present: \($0)") }
    }

    /// Returns why an owner may have no more waiting jobs.
    func refusalOfWaiting(_ owner: UInt32) -> ProtocolError? {
        if waitingLeft(of: owner) > 0 { return nil }
        return .busy("Too many jobs are waiting; try again when some have run.", retryAfter: 1)
    }

    /// Returns how many more waiting jobs an owner may have.
    func waitingLeft(of owner: UInt32) -> Int {
        let limits = settings.limits
        return min(
            limits.queuedJobs.saturatingSubtracting(quotas.all.waiting),
            limits.queuedJobsPerUser.saturatingSubtracting(quotas.holding(of: owner).waiting))
    }

    /// Returns why `queues` cannot be used.
    func refusal(of queues: [NamedQueue]) -> ProtocolError? {
        queues.first { !scheduler.takesJobs($0.name) }.map {
            .noQueue($0, among: scheduler.names.lazy.filter(scheduler.takesJobs))
        }
    }
}
