import JobModel

/// What callers ask for: submitting and looking. What changes a job is in `+Changes`, watching and waiting in `+Watching`.
extension JobCore {
    func handle(_ request: CoreRequest, _ id: RequestID, _ caller: Caller) {
        switch request {
        case .submit(let jobs): submit(jobs, id, caller)
        case .job(let job): show(job, id, caller)
        case .jobs(let jobs): show(jobs, id, caller)
        case .list(let filter): list(filter, id, caller)
        case .wait(let jobs, let timeout): wait(jobs, timeout: timeout, id, caller)
        case .watch(let scope, let subscription): watch(scope, subscription, id, caller)
        case .cancel(let job): cancel(job, id, caller)
        case .retry(let job, let point): retry(job, from: point, id, caller)
        case .remove(let job): remove(job, id, caller)
        case .result(let job, let offset, let length):
            result(of: job, offset: offset, length: length, id, caller)
        case .queues: answer(id, .queues(statuses(for: caller)))
        case .setQueue(let name, let change): setQueue(name, change, id, caller)
        case .setSchedule(let new): setSchedule(new, id, caller)
        case .schedule(let key): showSchedule(key, id, caller)
        case .schedules(let key, let owner, let limit): listSchedules(after: key, of: owner, limit: limit, id, caller)
        case .removeSchedule(let key): removeSchedule(key, id, caller)
        case .runSchedule(let key): runSchedule(key, id, caller)
        case .suspendSchedule(let key, let isSuspended): suspendSchedule(key, isSuspended, id, caller)
        case .statistics: answer(id, .statistics(statistics(for: caller)))
        case .probe: probe(id)
        case .configure(let settings, let policy): configure(settings, policy, id)
        }
    }

    // MARK: - Submitting

    private func submit(_ requested: [NewJob], _ id: RequestID, _ caller: Caller) {
        var answers: [Result<SubmittedJob, CoreError>?] = Array(repeating: nil, count: requested.count)
        var jobs: [Job] = []
        var indexes: [Int] = []
        var bytes: Int64 = 0
        let present = present(of: caller.uid)
        // By index, as a copy of a spec is counted in all of its parts.
        for index in requested.indices {
            if let refusal = refusal(of: requested[index], present, jobs: jobs.count, bytes: bytes) {
                answers[index] = .failure(refusal)
                continue
            }
            var job = Job(submitting: requested[index].spec, owner: caller.uid, at: now.wall)
            job.groups = caller.groups
            job.host = ConcurrencyKey(hostlessStepOf: job)?.name ?? requested[index].host
            bytes = bytes.saturatingAdding(job.storedSize)
            jobs.append(job)
            indexes.append(index)
        }
        submitting.add(jobs.count, bytes: bytes, of: caller.uid)
        for new in requested { if let subscription = new.subscription { beginning.insert(subscription) } }
        // Also where all were refused, so that answers keep their order.
        write(.submit(jobs)) { [unowned self] result in
            submitting.add(-jobs.count, bytes: -bytes, of: caller.uid)
            switch result {
            case .success(.submitted(let submissions)):
                expect(submissions.count == jobs.count, "The store answered another number of submissions.")
                count(submissions, jobs, caller)
                for (offset, submission) in submissions.enumerated() where offset < indexes.count {
                    answers[indexes[offset]] = admitted(submission, jobs[offset], requested[indexes[offset]], caller)
                }
            case .success: break
            case .failure(let error):
                for index in indexes { answers[index] = .failure(CoreError(error)) }
            }
            for new in requested { if let subscription = new.subscription { beginning.remove(subscription) } }
            answer(id, .submitted(answers.map { $0 ?? .failure(.stopping) }))
        }
    }

    /// What stands or is being stored when a request comes, which is the same for all of its jobs.
    struct Present {
        let all: Int
        let own: Int
        let ownBytes: Int64
        /// As many others wait in the middle of their chains as may wait.
        let isCrowded: Bool
    }

    func present(of owner: UInt32) -> Present {
        Present(
            all: counters.allWaiting + submitting.all, own: counters.waiting(of: owner) + submitting.jobs(of: owner),
            ownBytes: storedBytes(of: owner), isCrowded: hasTooManyResting(owner))
    }

    /// Whether as many jobs of an owner, or of all, wait in the middle of their chains as may wait for their first turn. Each takes
    /// some memory, so no further ones come until some have ended.
    func hasTooManyResting(_ owner: UInt32) -> Bool {
        let limits = settings.limits
        return resting.count(of: owner) >= limits.queuedJobsPerUser || resting.count >= limits.queuedJobs
    }

    /// Why a job is not admitted, with `jobs` of `bytes` before it in the same request.
    func refusal(of new: NewJob, _ present: Present, jobs: Int, bytes: Int64) -> CoreError? {
        guard phase == .serving else { return .stopping }
        if let refusal = refusalWithoutRoom { return refusal }
        guard takesJobs(new.spec.queue) else {
            return refusal(of: [NamedQueue(name: new.spec.queue, pointer: JSONPointer(["queue"]))])
        }
        if let refusal = refusal(of: new.queues) { return refusal }
        if let refusal = refusal(ofWaiting: jobs, present) { return refusal }
        let stored = present.ownBytes.saturatingAdding(bytes)
            .saturatingAdding(Int64(new.spec.storedSize) + Job.rowSize)
        if stored > settings.storedPerUser {
            return CoreError(
                .busy(retryAfter: 60),
                "Your jobs take up \(stored) bytes, and \(settings.storedPerUser) are allowed; remove some that are over."
            )
        }
        return nil
    }

    /// Why nothing that takes room on the disk is accepted.
    var refusalWithoutRoom: CoreError? {
        (storageFailure ?? shortage).map { CoreError(.storage, "Nothing can be stored at present: \($0)") }
    }

    /// Why no further job may wait for its turn, with `jobs` before it in the same request.
    func refusal(ofWaiting jobs: Int, _ present: Present) -> CoreError? {
        let limits = settings.limits
        let isFull = present.all + jobs >= limits.queuedJobs || present.own + jobs >= limits.queuedJobsPerUser
        guard isFull || present.isCrowded else { return nil }
        return CoreError(.busy(retryAfter: 1), "Too many jobs are waiting; try again when some have run.")
    }

    /// Why something is not accepted that names `queues`.
    func refusal(of queues: [NamedQueue]) -> CoreError? {
        queues.first { !takesJobs($0.name) }.map { .noQueue($0, among: scheduler.names.lazy.filter(takesJobs)) }
    }

    /// Counts the jobs that were created, those alike together.
    func count(_ submissions: [Submission], _ jobs: [Job], _ caller: Caller) {
        var run = (first: 0, count: 0, bytes: Int64(0))
        var created = 0
        func add() {
            guard run.count > 0 else { return }
            let job = jobs[run.first]
            counters.add(run.count, owner: caller.uid, queue: job.spec.queue, job.state)
            counters.addBytes(run.bytes, caller.uid, job.state)
            created += run.count
        }
        for (index, submission) in submissions.enumerated() where index < jobs.count {
            guard case .created = submission else { continue }
            if run.count == 0 || jobs[index].state != jobs[run.first].state
                || jobs[index].spec.queue != jobs[run.first].spec.queue
            {
                add()
                run = (index, 0, 0)
            }
            run.count += 1
            run.bytes = run.bytes.saturatingAdding(jobs[index].storedSize)
        }
        add()
        if created > 0 { count(caller.uid) { $0.submitted += created } }
        statusVersion += 1
    }

    func admitted(
        _ submission: Submission, _ job: Job, _ new: NewJob, _ caller: Caller
    ) -> Result<SubmittedJob, CoreError> {
        switch submission {
        case .conflict(let earlier):
            return .failure(
                CoreError(
                    .keyConflict(earlier), "The key belongs to job \(earlier), which has another spec; use another key."
                ))
        case .joined(let id, let stored):
            var state = stored
            switch table.known(id) {
            case .active(let entry): state = entry.job.state
            case .left(let job): state = job.state
            case .removed, nil: break
            }
            if let subscription = new.subscription, beginning.remove(subscription) != nil {
                subscriptions.add(subscription, WatchScope(.jobs([id])), caller)
                // Not for a job whose end is still being stored: its notification is yet to come.
                if state.isTerminal, table[id] == nil { subscriptions.finished(id) }
            }
            return .success(SubmittedJob(job: id, state: state, isCreated: false))
        case .created(let id):
            let isNew = table[id] == nil
            logAccepted(id, job)
            if isNew, !subscriptions.isEmpty { notify(job.numbered(id)) }
            if let subscription = new.subscription, beginning.remove(subscription) != nil {
                subscriptions.add(subscription, WatchScope(.jobs([id])), caller)
            }
            // A read can have found and started it before the write's answer came.
            if isNew {
                // Most jobs of a long queue stay in the store for now, and no copy of them is made.
                if !staysInStore(job, as: id) { makeReady(job.numbered(id)) }
            } else if let deadline = job.deadlineAt {
                setWallTimer(.deadline, at: deadline)
            }
            return .success(SubmittedJob(job: id, state: job.state, isCreated: true))
        }
    }

    /// Sets a timer for a stored job that waits for a time, and enqueues one that is ready.
    func makeReady(_ job: Job) {
        if let deadline = job.deadlineAt { setWallTimer(.deadline, at: deadline) }
        if let time = job.notBefore { setWallTimer(.due, at: time) } else { enqueue(job) }
    }

    /// Whether ``makeReady(_:)`` would do nothing with a new job that was stored under `id`.
    private func staysInStore(_ job: Job, as id: JobID) -> Bool {
        guard job.parent == nil, job.notBefore == nil, job.deadlineAt == nil else { return false }
        let position = ReadyPosition(priority: job.spec.priority, id: id)
        return scheduler.leavesInStore(position, queue: job.spec.queue, owner: job.owner)
    }

    // MARK: - Looking

    private func show(_ job: JobID, _ id: RequestID, _ caller: Caller) {
        find(job, for: caller) { [unowned self] found in
            switch found {
            case .success(let job): answer(id, .job(snapshot(job)))
            case .failure(let error): fail(id, error)
            }
        }
    }

    private func list(_ filter: JobFilter, _ id: RequestID, _ caller: Caller) {
        guard let parent = filter.parent else { return listVisible(filter, id, caller) }
        find(parent, for: caller) { [unowned self] found in
            if case .failure(let error) = found { return fail(id, error) }
            listVisible(filter, id, caller)
        }
    }

    private func listVisible(_ filter: JobFilter, _ id: RequestID, _ caller: Caller) {
        page(filter, caller) { [unowned self] result in
            switch result {
            case .success(let (jobs, next)):
                // Those found first may have changed while others were read.
                let views = snapshots(jobs).filter { filter.states.isEmpty || filter.states.contains($0.job.state) }
                answer(id, .page(views, next: next))
            case .failure(let error): fail(id, error)
            }
        }
    }

    /// The jobs that `caller` may see and `filter` asks for, as they are now, and the id to go on after.
    func page(
        _ filter: JobFilter, _ caller: Caller, _ body: @escaping (Result<([Job], JobID?), CoreError>) -> Void
    ) {
        var filter = filter
        if !caller.isAdmin { filter.owner = caller.uid }
        let search = PageSearch(filter, body)
        if filter.states == [.running] { return readRunning(search, after: filter.after, atOnce: Self.firstRows) }
        readPage(search, after: filter.after, atOnce: Self.firstRows)
    }

    /// Rows that a page asks for first, and, as long as they are small, at most later: others' reads and requests have their
    /// turns in between.
    private static let firstRows = 16
    private static let mostRows = 64
    /// Bytes of specs and results after which a page ends early: no answer can show more.
    private static let mostPageBytes: Int64 = 2 << 20

    /// A page that is being read, and what was found so far. It is an object, as each part would copy all before it otherwise.
    private final class PageSearch {
        let filter: JobFilter
        let body: (Result<([Job], JobID?), CoreError>) -> Void
        var found: [Job] = []
        var bytes: Int64 = 0

        init(_ filter: JobFilter, _ body: @escaping (Result<([Job], JobID?), CoreError>) -> Void) {
            self.filter = filter
            self.body = body
        }
    }

    private func readPage(_ search: PageSearch, after: JobID?, atOnce: Int) {
        let filter = search.filter
        var asked = filter
        // A running job may be stored as queued, so the store is asked for both, and for one more than is wanted.
        if filter.states.contains(.running) { asked.states.insert(.queued) }
        // And a job that was running when the last daemon ended is stored as running until its turn comes.
        if filter.states.contains(.queued) { asked.states.insert(.running) }
        asked.limit = min(atOnce, filter.limit - search.found.count + 1)
        asked.after = after
        read(.list(asked)) { [unowned self] result in
            guard case .success(.jobs(let rows)) = result else {
                return search.body(.failure(Self.error(of: result)))
            }
            for row in rows {
                guard let job = table.present(row) else { continue }
                guard filter.states.isEmpty || filter.states.contains(job.state) else { continue }
                search.found.append(job)
                search.bytes = search.bytes.saturatingAdding(job.memorySize)
            }
            let isFull = search.found.count > filter.limit
            // The store ends a page early where its jobs are large.
            let isLast = rows.count < asked.limit && !StoredJobPage.isFull(rows)
            guard !isFull, search.bytes < Self.mostPageBytes, !isLast, let last = rows.last?.id else {
                if isFull { search.found.removeLast(search.found.count - filter.limit) }
                let hasMore = isFull || !isLast
                return search.body(.success((search.found, hasMore ? search.found.last?.id ?? rows.last?.id : nil)))
            }
            readPage(search, after: last, atOnce: Self.mostRows)
        }
    }

    /// Reads on for a page of running jobs. Those in memory are not all stored as running, and those that wait in the middle of
    /// their chains are in the store only, so it is made of both; what is queued, which may be very much, is not asked for.
    private func readRunning(_ search: PageSearch, after: JobID?, atOnce: Int) {
        let filter = search.filter
        var asked = filter
        asked.limit = min(atOnce, filter.limit - search.found.count + 1)
        asked.after = after
        read(.list(asked)) { [unowned self] result in
            guard case .success(.jobs(let rows)) = result else {
                return search.body(.failure(Self.error(of: result)))
            }
            let isNewest = filter.order == .newest
            // Behind the last row there may be others that are stored as running.
            let isLast = rows.count < asked.limit && !StoredJobPage.isFull(rows)
            let end = isLast ? nil : rows.last?.id
            func isWanted(_ job: Job) -> Bool {
                filter.admits(job) && job.state == .running
                    && after.map { isNewest ? job.id < $0 : job.id > $0 } ?? true
                    && end.map { isNewest ? job.id >= $0 : job.id <= $0 } ?? true
            }
            var jobs = rows.compactMap { table.present($0) }.filter { $0.state == .running && table[$0.id] == nil }
            jobs += table.jobs(where: isWanted)
            // One that left the memory since the store looked was not stored as running then.
            let found = Set(rows.map(\.id))
            for id in table.departedIDs where !found.contains(id) {
                if case .left(let job)? = table.known(id), isWanted(job) { jobs.append(job) }
            }
            jobs.sort { isNewest ? $0.id > $1.id : $0.id < $1.id }
            for job in jobs {
                search.found.append(job)
                search.bytes = search.bytes.saturatingAdding(job.memorySize)
            }
            let isFull = search.found.count > filter.limit
            if let end, !isFull, search.bytes < Self.mostPageBytes {
                return readRunning(search, after: end, atOnce: Self.mostRows)
            }
            if isFull { search.found.removeLast(search.found.count - filter.limit) }
            search.body(.success((search.found, isFull ? search.found.last?.id : end)))
        }
    }

    static func error(of result: Result<StoreRows, StoreError>) -> CoreError {
        if case .failure(let error) = result { return CoreError(error) }
        return CoreError(.storage, "The store answered another question; try again.")
    }

    private func result(of job: JobID, offset: Int, length: Int, _ id: RequestID, _ caller: Caller) {
        find(job, for: caller) { [unowned self] found in
            switch found {
            case .failure(let error): fail(id, error)
            case .success(let job) where job.storedResult != nil:
                read(.result(of: job.id, offset: offset, length: length)) { [unowned self] result in
                    switch result {
                    case .success(.result(let part?)): answer(id, .result(.part(part)))
                    // It was removed meanwhile.
                    case .success(.result(nil)): fail(id, .noJob(job.id))
                    default: fail(id, Self.error(of: result))
                    }
                }
            case .success(let job):
                guard let result = JobResult(of: job) else {
                    return fail(
                        id,
                        CoreError(.wrongState(job.state), "Job \(job.id) has no result; it is \(job.state.rawValue)."))
                }
                answer(id, .result(result))
            }
        }
    }

    func statistics(for caller: Caller) -> CoreStatistics {
        let owner = caller.isAdmin ? nil : caller.uid
        return CoreStatistics(
            uptime: Double(now.monotonic - startedAt.monotonic) / 1e9,
            jobs: counters.totals(owner: owner),
            totals: caller.isAdmin
                ? totals.values.reduce(CoreTotals(), +) : totals[caller.uid] ?? CoreTotals(),
            watches: subscriptions.count(of: owner), storageFailure: storageFailure ?? shortage)
    }

    /// The statistics for the status line of the service manager.
    package var overallStatistics: CoreStatistics { statistics(for: Caller(uid: 0, isAdmin: true)) }
}

extension JobFilter {
    /// Whether it asks for `job`, whatever its state and id are. Of another's nothing but the owner is looked at.
    fileprivate func admits(_ job: Job) -> Bool {
        (owner.map { $0 == job.owner } ?? true) && (queue.map { $0 == job.spec.queue } ?? true)
            && (tag.map(job.spec.tags.contains) ?? true)
            && (source.map { $0 == job.spec.source.type } ?? true) && job.parent?.job == parent
    }
}

extension JobResult {
    /// Where the result of `job` is; nil where it has none.
    init?(of job: Job) {
        guard job.state == .succeeded, case .success(let result) = job.carried else { return nil }
        let last = job.outcomes.last { $0.link == 0 || !job.spec.links[$0.link - 1].isFinally }
        let step = last.flatMap { $0.link == 0 ? job.spec.source : job.spec.links[$0.link - 1].sourceStep }
        guard step?.type == .url, result["body"] != nil || result["spilled"] != nil else {
            self = .value(result)
            return
        }
        if result["spilled"] == true {
            self = .file(link: last?.link ?? 0)
        } else if let text = result["body"]?.string {
            self = .body(result["encoding"] == "base64" ? Base64.decode(text) ?? [] : Array(text.utf8))
        } else {
            self = .body([])
        }
    }
}

extension Link {
    /// The step with a source that gives the link's result, where only one can.
    fileprivate var sourceStep: Step? {
        switch self {
        case .pair(let then, let fail, _): then ?? fail
        case .both(let step), .finally(let step): step
        }
    }
}
