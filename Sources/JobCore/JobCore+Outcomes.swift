import JobModel

/// Stores the outcomes of jobs and does what follows.
extension JobCore {
    /// Stores a job as it is now, and carries `action` out once that is durable; then calls `done`.
    func save(_ entry: ActiveJob, then action: Job.Action, _ done: ((Result<Void, StoreError>) -> Void)? = nil) {
        let job = entry.job
        entry.unsaved = action
        entry.saves += 1
        let save = entry.saves
        let changes = entry.changes
        let size = job.storedSize
        let bytes = job.memorySize
        addPending(bytes, of: job.owner)
        write(.save([job])) { [unowned self] result in
            removePending(bytes, of: job.owner)
            guard table[job.id] === entry else { done?(.success(())); return }
            if case .failure(let error) = result {
                if entry.saves == save {
                    storageFailed(error)
                    answerAwaiting(entry, .failure(error))
                }
                done?(.failure(error))
                return
            }
            if entry.hasOldMark {
                entry.hasOldMark = false
                emit(.mark(job.id, isWorking: false))
            }
            counters.addBytes(-entry.stored.size, job.owner, entry.stored.state)
            counters.addBytes(size, job.owner, job.state)
            entry.stored = (size, job.state)
            entry.storedChanges = changes
            // Of several saves on their way only the last one counts: it has the job as it is now.
            guard entry.saves == save, entry.unsaved != nil else { done?(.success(())); return }
            // To write what subscribers are told of a large job takes long.
            guard bytes > Self.largeEvent, !subscriptions.isEmpty else { return saved(entry, done) }
            inTurn(of: entry) { [unowned self] in
                guard table[job.id] === entry, entry.saves == save else { done?(.success(())); return }
                saved(entry, done)
            }
        }
    }

    /// A job that takes so many bytes is on its way to the store.
    func addPending(_ bytes: Int64, of owner: UInt32) {
        pendingSaves.add(bytes, of: owner)
        pauseOrResume(owner)
    }

    func removePending(_ bytes: Int64, of owner: UInt32) {
        pendingSaves.remove(bytes, of: owner)
        pauseOrResume(owner)
        saveEnded(of: owner)
    }

    /// Whether so much is on its way to the store, or waits for a turn, that nothing new begins.
    var hasTooMuchPending: Bool { pendingSaves.isFull || pendingTurns.isFull }
    var hasMuchPending: Bool { pendingSaves.isMuch || pendingTurns.isMuch }
    func hasTooMuchPending(of owner: UInt32) -> Bool {
        pendingSaves.isFull(for: owner) || pendingTurns.isFull(for: owner)
    }

    /// Jobs of an owner that wait for their turn, beyond which nothing more of theirs starts: each has a slot meanwhile, and may
    /// have a host that others wait for.
    private static let mostWaitingForTurns = 2

    func pauseOrResume(_ owner: UInt32) {
        if hasTooMuchPending(of: owner) || waitingForTurns(of: owner) > Self.mostWaitingForTurns
            || keepsOthersWaiting(owner)
        {
            scheduler.pause(owner)
        } else {
            scheduler.resume(owner)
        }
    }

    /// Whether an owner has so many jobs on their way to the store that nothing more of theirs starts while others are there.
    package func keepsOthersWaiting(_ owner: UInt32) -> Bool {
        guard users.areOthers(than: owner) else { return false }
        let jobs = pendingSaves.jobs(of: owner)
        return jobs >= PendingJobs.mostShared || jobs > PendingJobs.fewShared && scheduler.paused.contains(owner)
    }

    func usersChanged(_ new: ConnectedUsers) {
        users = new
        for owner in scheduler.paused.sorted() { pauseOrResume(owner) }
    }

    /// Bytes of a job in memory past which subscribers are told of it in a turn of its owner's.
    private static let largeEvent: Int64 = 64 << 10

    /// A job is stored as it is now.
    private func saved(_ entry: ActiveJob, _ done: ((Result<Void, StoreError>) -> Void)?) {
        guard let action = entry.unsaved else { done?(.success(())); return }
        entry.unsaved = nil
        // Whoever asked gets the job as it is stored, before it goes on.
        done?(.success(()))
        answerAwaiting(entry, .success(()))
        carryOut(action, entry)
        resumePostponed(entry)
    }

    /// Lets the requests go on that waited for a job to be stored.
    func resumePostponed(_ entry: ActiveJob) {
        let postponed = entry.postponed
        entry.postponed = []
        for body in postponed { body() }
    }

    func answerAwaiting(_ entry: ActiveJob, _ result: Result<Void, StoreError>) {
        let waiting = entry.awaitingSave
        entry.awaitingSave = []
        for done in waiting { done(result) }
    }

    /// Calls `done` once a job is stored as it is now.
    func whenSaved(_ entry: ActiveJob, _ done: @escaping (Result<Void, StoreError>) -> Void) {
        if entry.unsaved == nil { done(.success(())) } else { entry.awaitingSave.append(done) }
    }

    private func carryOut(_ action: Job.Action, _ entry: ActiveJob) {
        switch action {
        case .run, .interrupt(thenRun: true):
            notify(entry.job)
            runStep(entry)
        case .wait:
            count(entry.job.owner) { $0.retried += 1 }
            // What waits for room may be tried very often: the first time says it.
            if let error = entry.job.lastFailure, let time = entry.job.notBefore,
                !entry.job.isPostponedAgain(at: now.wall)
            {
                log(entry.job, .retrying(in: max(0, time.seconds(since: now.wall)), error))
            }
            deactivate(entry)
            notify(entry.job, lineage: entry.lineage)
            if let parent = entry.job.parent { lists.childPaused(entry.job.id, of: parent.job) }
            if let time = entry.job.notBefore { setWallTimer(.due, at: time) }
        case .finish, .interrupt(thenRun: false): finish(entry)
        case .enqueue:
            deactivate(entry)
            notify(entry.job, lineage: entry.lineage)
            makeReady(entry.job)
        case .none: restIfWaiting(entry)
        }
    }

    /// A job is finished, and its end is stored.
    private func finish(_ entry: ActiveJob) {
        let job = entry.job
        countEnd(of: job)
        deactivate(entry)
        schedules.jobEnded(job.id)
        tellEnd(of: entry)
        if let parent = job.parent {
            childEnded(parent, job, bytes: entry.progress.flatMap { $0.unit == .bytes ? $0.completed : nil } ?? 0)
        } else {
            // There may be too many finished jobs now.
            timers.setEarlier(.retention, at: now.monotonic(after: Self.purgeInterval))
            if counters.finishedBytes > settings.retentionBytes {
                timers.setEarlier(.retention, at: now.monotonic(after: 1))
            }
        }
    }

    func countEnd(of job: Job) {
        count(job.owner) { totals in
            switch job.state {
            case .succeeded: totals.succeeded += 1
            case .failed: totals.failed += 1
            default: totals.cancelled += 1
            }
        }
        log(job, job.end)
    }

    /// Tells those who watch a job, and those who wait for it, that it has ended.
    func tellEnd(of entry: ActiveJob) {
        notify(entry.job, lineage: entry.lineage)
        for wait in waits.finished(entry.job.id) { answer(wait, having: entry.job) }
    }

    // MARK: - A storage that fails

    func storageFailed(_ error: StoreError) {
        guard phase == .serving else { return }
        if storageFailure == nil {
            storageFailure = error.message
            statusVersion += 1
            log(
                .error, "Nothing can be stored; no new jobs until that works again: \(error.message)",
                event: .storageFailed)
        }
        if !timers.isSet(.storage) { setTimer(.storage, in: 1) }
    }

    func roomChanged(_ new: String?) {
        switch (shortage, new) {
        case (nil, let reason?): log(.error, "No new jobs until there is room: \(reason)", event: .diskShort)
        case (_?, nil): log(.notice, "There is room for new jobs again.", event: .diskRoom)
        default: break
        }
        if (shortage == nil) != (new == nil) { statusVersion += 1 }
        shortage = new
    }

    func storageAnswered(_ result: Result<Void, StoreError>) {
        switch result {
        case .failure(let error): storageFailed(error)
        case .success:
            guard storageFailure != nil else { return }
            storageFailure = nil
            statusVersion += 1
            log(.notice, "Storing works again.", event: .storageWorks)
            for entry in table.all {
                if let action = entry.unsaved { save(entry, then: action) }
            }
        }
    }
}

extension Job {
    /// Whether it could not begin, as before.
    fileprivate func isPostponedAgain(at now: Timestamp) -> Bool {
        guard let pause = lastFailure?.postponed, let linkStartedAt else { return false }
        return now.seconds(since: linkStartedAt) >= pause
    }

    /// How a finished job ended.
    fileprivate var end: JobLogEntry.Event {
        switch (state, carried) {
        case (.succeeded, _): .succeeded
        case (.cancelled, _): .cancelled
        case (_, .failure(let error)): .failed(error)
        default: .failed(JobError(.internal, "It has no error."))
        }
    }
}
