import JobModel

/// Cancelling, passing deadlines, retrying and removing.
extension JobCore {
    // MARK: - Stopping

    /// Cancels a job and everything below it; answered once that is durable.
    func cancel(_ job: JobID, _ id: RequestID, _ caller: Caller) {
        find(job, for: caller) { [unowned self] found in
            switch found {
            case .failure(let error): fail(id, error)
            case .success(let job):
                guard let entry = table[job.id], entry.isBeingRetried else { return cancel(job, id) }
                // Not before the retry is stored or refused: a refused retry must not end in a cancelled job.
                entry.postponed.append { [unowned self] in
                    if entry.isRemoved { fail(id, .noJob(job.id)) } else { cancel(entry.job, id) }
                }
            }
        }
    }

    private func cancel(_ job: Job, _ id: RequestID) {
        guard phase == .serving else { return fail(id, .stopping) }
        guard !job.state.isTerminal else {
            let message = "Job \(job.id) is over (\(job.state.rawValue)); there is nothing to cancel."
            return fail(id, CoreError(.wrongState(job.state), message))
        }
        stop(job, .cancelled) { [unowned self] result in
            switch result {
            case .success(let job): answer(id, .job(snapshot(job)))
            case .failure(let error): fail(id, CoreError(error))
            }
        }
    }

    /// Cancels jobs that nobody waits for.
    func stopLater(_ ids: [JobID]) {
        for id in ids {
            if let entry = table[id] { stop(entry, .cancelled, nil) }
        }
        let stored = ids.filter { table[$0] == nil }
        // A job that is to be resumed is stopped after that, as it may have to go on.
        guard unresumed == nil else { return stopAgain += stored }
        toStop += stored
        stopSome()
    }

    /// Cancels the children of a list that is finished and was not open in memory.
    func stopChildren(of list: JobID, link: Int) {
        read(.childStates(of: list, link: link)) { [unowned self] result in
            guard case .success(.childStates(let states)) = result else {
                log(.error, "The children cannot be read: \(Self.error(of: result).message)", job: list)
                stopChildrenAgain.append((list, link))
                return setTimer(.readAgain, in: 1)
            }
            stopLater(states.filter { !$0.state.isTerminal }.map(\.id))
        }
    }

    /// How long the next jobs wait where much is on its way to the store, in nanoseconds.
    private static let stopInterval: Int64 = 100_000_000

    /// Cancels as many stored jobs as may be in memory together; the last thing that is done about each input until all are.
    func stopSome() {
        guard phase == .serving, unresumed == nil, !isReadingStops, !toStop.isEmpty, storageFailure == nil,
            !hasTooMuchPending
        else { return }
        // Others whose jobs are being stored all the time do not hold this up.
        guard !hasMuchPending || now.monotonic >= nextStops else { return }
        isReadingStops = true
        nextStops = now.monotonic + Self.stopInterval
        let ids = Array(toStop.prefix(256))
        read(.firstJobs(ids)) { [unowned self] result in
            isReadingStops = false
            guard phase == .serving else { return }
            guard case .success(.jobs(let rows)) = result else {
                log(.error, "Jobs to be cancelled cannot be read: \(Self.error(of: result).message)")
                toStop.removeFirst(ids.count)
                stopAgain += ids
                return setTimer(.readAgain, in: 1)
            }
            toStop.removeFirst(StoredJobPage.count(of: ids, answeredBy: rows))
            for row in rows { stop(row, .cancelled) }
        }
    }

    /// Stops a job as it was read; it may have changed since. `done` gets it as it is once that is durable.
    func stop(_ row: Job, _ reason: Job.Stop, _ done: ((Result<Job, StoreError>) -> Void)? = nil) {
        guard let job = table.present(row) else { done?(.success(row)); return }
        if let entry = table[job.id] { return stop(entry, reason, done) }
        // A job that is being stopped already, and waits for the retry of a `finally` link, goes on with that.
        guard !job.state.isTerminal, job.stop == nil else { done?(.success(job)); return }
        // One that rests goes on waiting where it is at a `finally` link.
        if resting[job.id] == nil { scheduler.remove(job.id, queue: job.spec.queue, owner: job.owner) }
        stop(activate(job), reason, done)
    }

    func stop(_ entry: ActiveJob, _ reason: Job.Stop, _ done: ((Result<Job, StoreError>) -> Void)?) {
        let before = entry.job
        let hadWork = entry.run != nil
        let action: Job.Action
        do { action = try transition(entry, .stop(reason, awaitsEnd: hadWork && entry.runEndsLater)) } catch {
            // It is finished, and its end is being stored.
            if let done { whenSaved(entry) { result in done(result.map { entry.job }) } }
            return
        }
        switch action {
        case .interrupt, .finish, .enqueue:
            if entry.isParked {
                entry.isParked = false
                scheduler.remove(entry.job.id, queue: entry.job.spec.queue, owner: entry.job.owner)
            }
            entry.step += 1
            let children = lists[entry.job.id]?.join.open ?? []
            if lists[entry.job.id] == nil, before.state == .running, before.children > 0,
                before.step?.type?.hasChildren == true
            {
                // Its children were not read yet.
                stopChildren(of: before.id, link: before.link)
            }
            cancelRun(entry)
            closeList(entry)
            // What ran goes on in its slot.
            if action == .interrupt(thenRun: true) { releasePermit(entry) } else { releaseAll(entry) }
            if action == .enqueue { entry.job.host = nextHost(of: entry.job) }
            stopLater(children)
            guard before.mayHavePart(startedAt: startedAt.wall) else { return saveStopped(entry, then: action, done) }
            // What is at work removes its part as it ends, and what rests has one without anybody at work: it is gone before the
            // end is stored. Saves on their way do not decide any more how the job goes on.
            entry.saves += 1
            entry.unsaved = action
            let step = entry.step
            let task = cleanUp { [unowned self] in
                guard table[entry.job.id] === entry, entry.step == step else { done?(.success(entry.job)); return }
                saveStopped(entry, then: action, done)
            }
            emit(.discardParts(task, job: before.id, links: before.link...Int.max, owner: before.owner))
        case .none where before.stop == nil:
            if entry.job.isEnding, let run = entry.run { emit(.cancel(run, awaitsEnd: true)) }
            // A running `finally` link goes on, and so does a source until it has ended, but after it only other `finally`
            // links run. A restart must not forget that, so it is stored.
            saveStopped(entry, then: entry.unsaved ?? .none, done)
        case .run, .wait, .none:
            // It is being stopped already; whoever asks again gets it as it is.
            if let done { whenSaved(entry) { result in done(result.map { entry.job }) } }
        }
    }

    /// Stores a job that is stopped. It may go on meanwhile: `done` gets it once it is stored as it is then.
    private func saveStopped(
        _ entry: ActiveJob, then action: Job.Action, _ done: ((Result<Job, StoreError>) -> Void)?
    ) {
        save(entry, then: action) { [unowned self] result in
            guard let done else { return }
            guard case .success = result, table[entry.job.id] === entry else { return done(result.map { entry.job }) }
            whenSaved(entry) { result in done(result.map { entry.job }) }
        }
    }

    // MARK: - Retrying and removing

    /// Runs a failed or cancelled job again.
    func retry(_ job: JobID, from point: Job.RetryPoint, _ id: RequestID, _ caller: Caller) {
        find(job, for: caller) { [unowned self] found in
            switch found {
            case .failure(let error): fail(id, error)
            case .success(let job):
                if onceStored(job, id, { [unowned self] in self.retry(job.id, from: point, id, caller) }) { return }
                do throws(CoreError) { try retry(job, from: point, id) } catch { fail(id, error) }
            }
        }
    }

    /// Calls `body` once the end of a job is stored, where that is still to come; false where it is not.
    private func onceStored(_ job: Job, _ id: RequestID, _ body: @escaping () -> Void) -> Bool {
        guard let entry = table[job.id], entry.job.state.isTerminal, entry.unsaved != nil, phase == .serving else {
            return false
        }
        whenSaved(entry) { [unowned self] result in
            switch result {
            case .failure(let error): fail(id, CoreError(error))
            case .success: entry.postponed.append(body)
            }
        }
        return true
    }

    private func retry(_ job: Job, from point: Job.RetryPoint, _ id: RequestID) throws(CoreError) {
        guard job.parent == nil else {
            throw CoreError(.wrongState(job.state), "Job \(job.id) is a child; retry its parent.")
        }
        guard phase == .serving else { throw .stopping }
        guard !removing.contains(job.id) else { throw .noJob(job.id) }
        guard table[job.id] == nil, job.state == .failed || job.state == .cancelled else {
            throw CoreError(
                .wrongState(job.state),
                "Job \(job.id) is \(job.state.rawValue); only a failed or cancelled one is retried.")
        }
        // It waits like one that is submitted.
        if let refusal = refusalWithoutRoom ?? refusal(ofWaiting: 0, present(of: job.owner)) { throw refusal }
        let entry = activate(job)
        do { _ = try transition(entry, .retry(point)) } catch {
            deactivate(entry)
            throw CoreError(.wrongState(error.state), "Job \(job.id) is \(error.state.rawValue) and cannot be retried.")
        }
        entry.isBeingRetried = true
        log(entry.job, .retried)
        entry.job.host = nextHost(of: entry.job)
        guard entry.job.children > 0 else { return saveRetry(entry, before: job, hasRemoved: false, id) }
        write(.removeChildren(of: job.id, fromLink: entry.job.link)) { [unowned self] result in
            switch result {
            case .success(.removed(let removed)):
                entry.job.children = max(0, entry.job.children - removed.count { $0.id != job.id })
                // The children are dropped before the retry is stored: their outcomes must not count any more, and the
                // next step must not find their files.
                forget(removed) { [unowned self] in saveRetry(entry, before: job, hasRemoved: !removed.isEmpty, id) }
            case .success: break
            case .failure(let error):
                fail(id, CoreError(error))
                if !entry.isRemoved { undoRetry(entry, before: job) }
            }
        }
    }

    /// A retry that could not begin: the job is finished as it was, also for requests that came meanwhile.
    private func undoRetry(_ entry: ActiveJob, before job: Job) {
        counters.move(job, from: entry.job.state)
        entry.job = job
        deactivate(entry)
        let subscribers = subscriptions.subscribers(byID: job.id)
        if !subscribers.isEmpty { emit(.notify(subscribers, JobChange(snapshot: snapshot(job)))) }
        subscriptions.finished(job.id)
        for wait in waits.finished(job.id) { answer(wait, having: job) }
        resumePostponed(entry)
    }

    private func saveRetry(_ entry: ActiveJob, before job: Job, hasRemoved: Bool, _ id: RequestID) {
        if entry.isRemoved { return fail(id, .noJob(job.id)) }
        save(entry, then: .enqueue) { [unowned self] result in
            guard case .failure(let error) = result else {
                if entry.isRemoved { return fail(id, .noJob(job.id)) }
                schedules.jobReopened(job.id)
                return answer(id, .job(snapshot(entry.job)))
            }
            fail(id, CoreError(error))
            if entry.isRemoved { return }
            // A refused retry does not happen later, unless children were removed for it, which cannot be undone.
            if !hasRemoved { return undoRetry(entry, before: job) }
            entry.isBeingRetried = false
            resumePostponed(entry)
        }
    }

    /// Removes a finished job with all below it.
    func remove(_ job: JobID, _ id: RequestID, _ caller: Caller) {
        find(job, for: caller) { [unowned self] found in
            switch found {
            case .failure(let error): fail(id, error)
            case .success(let job):
                if onceStored(job, id, { [unowned self] in remove(job.id, id, caller) }) { return }
                do throws(CoreError) { try remove(job, id) } catch { fail(id, error) }
            }
        }
    }

    private func remove(_ job: Job, _ id: RequestID) throws(CoreError) {
        guard job.parent == nil else {
            throw CoreError(.wrongState(job.state), "Job \(job.id) is a child; it is removed with its parent.")
        }
        guard phase == .serving else { throw .stopping }
        guard !removing.contains(job.id) else { throw .noJob(job.id) }
        guard job.state.isTerminal, table[job.id] == nil else {
            throw CoreError(
                .wrongState(job.state), "Job \(job.id) is \(job.state.rawValue); cancel it before removing it.")
        }
        removing.insert(job.id)
        write(.remove(job.id)) { [unowned self] result in
            removing.remove(job.id)
            switch result {
            case .success(.removed(let removed)): forget(removed) { [unowned self] in answer(id, .done) }
            case .success: answer(id, .done)
            case .failure(let error): fail(id, CoreError(error))
            }
        }
    }
}

extension Job {
    /// Whether its present step or a later one may have left a `.part`, where the daemon was started at `startedAt`.
    fileprivate func mayHavePart(startedAt: Timestamp) -> Bool {
        (attempt > 0 || createdAt < startedAt) && step?.type == .download || mayHaveLaterPart
    }

    /// Whether a link that the job has not reached, or not again, may have left a `.part`: it was begun before a crash, and that
    /// the job had come so far was not stored yet; or it failed, and the whole job was retried.
    var mayHaveLaterPart: Bool { spec.links.contains { $0.contains(.download) } }
}
