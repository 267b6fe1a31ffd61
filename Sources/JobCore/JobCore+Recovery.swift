import JobModel

/// Goes on where the last daemon ended, and stops.
extension JobCore {
    /// Crashes in a row, with a source at work, after which a job fails instead of running again.
    private static let mostCrashes = 3

    func start() {
        startedAt = now
        recoveredAt = now.wall
        read(.recovery) { [unowned self] result in
            switch result {
            case .success(.recovery(let state)): recover(state)
            case .success:
                emit(.started(.failure(StoreError(.read, "The store answered another question than what it holds."))))
            case .failure(let error): emit(.started(.failure(error)))
            }
        }
    }

    private func recover(_ state: StoredState) {
        counters.load(state.counts)
        configuredQueues = Set(settings.queues.map(\.name))
        for queue in settings.queues { open(queue) }
        for queue in state.queues { open(queue) }
        storedQueues = Set(state.queues.map(\.name))
        // Jobs run also in a queue that the configuration no longer has.
        for name in counters.queues() where !scheduler.has(queue: name) { openForgotten(name) }
        for key in counters.keys(with: .queued) { scheduler.expectStored(queue: key.queue, owner: key.owner) }
        phase = .serving
        unresumed = Recovery(state)
        setTimes(state.times)
        for stored in state.schedules {
            schedules.load(stored.schedule, isLastOpen: stored.lastState.map { !$0.isTerminal } ?? false)
        }
        schedules.outdate()
        readZones()
        retentionClock = RetentionClock(at: now, lastEnd: state.times.lastEnd)
    }

    /// What is left to do before the daemon has taken over.
    struct Recovery {
        /// The jobs that are stored as running, by id.
        fileprivate var running: ArraySlice<JobID>
        fileprivate let crashed: Set<JobID>
        /// Jobs whose first link was at work, which are stored as queued; no more than there were slots.
        fileprivate let queued: [Job]
        fileprivate var isReading = false

        fileprivate init(_ state: StoredState) {
            running = state.running[...]
            crashed = Set(state.crashed.map(\.id))
            queued = state.crashed.filter { $0.state == .queued }
        }
    }

    /// Jobs that are read and resumed at once; those that are large are fewer.
    private static let mostResumed = 256

    /// Resumes as many jobs as may be in memory together; the last thing that is done about each input until all are. Jobs
    /// that only wait leave the memory again.
    func resumeSome() {
        guard phase == .serving, let recovery = unresumed, !recovery.isReading, !hasMuchPending else { return }
        guard !recovery.running.isEmpty else {
            unresumed = nil
            // Behind the lists that they may belong to.
            for job in recovery.queued { resumeQueued(job) }
            let stopped = stopAgain
            stopAgain = []
            stopLater(stopped)
            purge()
            cancelOrphans()
            return emit(.started(.success(())))
        }
        unresumed?.isReading = true
        let ids = Array(recovery.running.prefix(Self.mostResumed))
        read(.firstJobs(ids)) { [unowned self] result in
            guard phase == .serving else { return }
            guard case .success(.jobs(let rows)) = result else {
                let message = "The jobs that were running cannot be read: \(Self.error(of: result).message)"
                return emit(.started(.failure(StoreError(.read, message))))
            }
            unresumed?.isReading = false
            unresumed?.running.removeFirst(StoredJobPage.count(of: ids, answeredBy: rows))
            for job in rows { resumeRunning(job, isCrashed: recovery.crashed.contains(job.id)) }
        }
    }

    /// Children that are read and cancelled at once.
    private static let orphans = 256

    /// Cancels gated children whose list was over before they were cancelled; nothing else would find them. Other children
    /// are found when their turn or time comes.
    func cancelOrphans() {
        read(.orphans(limit: Self.orphans)) { [unowned self] result in
            guard case .success(.jobs(let rows)) = result else {
                log(.error, "The children of lists that are over cannot be read: \(Self.error(of: result).message)")
                mustCancelOrphans = true
                return setTimer(.readAgain, in: 1)
            }
            var left = rows.count
            for row in rows {
                stop(row, .cancelled) { [unowned self] result in
                    left -= 1
                    // Saves that failed are repeated elsewhere.
                    if left == 0, rows.count == Self.orphans { cancelOrphans() }
                }
            }
        }
    }

    /// A job whose first link was at work, which is not stored as running.
    private func resumeQueued(_ job: Job) {
        let entry = activate(job)
        entry.hasOldMark = true
        log(job, .resumed)
        entry.job.crashes += 1
        guard entry.job.crashes >= Self.mostCrashes else { return save(entry, then: .enqueue) }
        guard (try? transition(entry, .start)) != nil else { return deactivate(entry) }
        endPoisoned(entry)
    }

    /// A job that is stored as running.
    private func resumeRunning(_ job: Job, isCrashed: Bool) {
        let entry = activate(job)
        entry.hasOldMark = isCrashed
        log(job, .resumed)
        // Jobs come by id, so a parent comes before its children. The crash can have come between the end of a list and
        // the cancelling of its children.
        if isOrphan(job) {
            stop(entry, .cancelled, nil)
            // A `finally` link goes on all the same.
            guard job.isAtFinally else { return }
        }
        if isCrashed { entry.job.crashes += 1 }
        if isCrashed, entry.job.crashes >= Self.mostCrashes { return endPoisoned(entry) }
        do {
            let wasEnding = entry.job.isEnding
            let action = try transition(entry, .restart)
            guard !isCrashed, !wasEnding, entry.job.step?.type == .timer || goesOnWithChildren(entry.job) else {
                // A crash is counted before the job runs again, as this job may be what causes the next one.
                entry.job.host = nextHost(of: entry.job)
                return save(entry, then: action)
            }
            // It needs no slot.
            _ = try transition(entry, .start)
            if entry.job == job { entry.storedChanges = entry.changes }
            entry.isResumed = goesOnWithChildren(job)
            runStep(entry)
        } catch {
            log(.error, "A stored job is in no state to go on.", job: job.id)
            deactivate(entry)
        }
    }

    /// Whether the list that a child belongs to is over.
    private func isOrphan(_ job: Job) -> Bool {
        guard let parent = job.parent, job.stop == nil else { return false }
        guard let list = table[parent.job]?.job else { return true }
        return list.state.isTerminal || list.stop != nil && !list.isAtFinally || list.link != parent.link
    }

    private func goesOnWithChildren(_ job: Job) -> Bool { job.step?.type?.hasChildren == true && job.children > 0 }

    private func endPoisoned(_ entry: ActiveJob) {
        stepEnded(
            entry,
            .failure(
                JobError(
                    .interrupted,
                    "The daemon was killed \(entry.job.crashes) times in a row while this ran; look at its log, "
                        + "then retry the job.")))
    }

    /// Stops without losing anything: what was answered is stored, and the next daemon goes on with what runs.
    func stop() {
        guard phase != .stopping else { return }
        phase = .stopping
        if unresumed != nil {
            unresumed = nil
            emit(.started(.failure(StoreError(.read, "The daemon was stopped before it had taken over."))))
        }
        for request in (waits.all + beginningWaits).sorted() {
            waits.remove(request)
            fail(request, .stopping)
        }
        beginningWaits = []
        for find in finds.drop() { find() }
        var reset: [Job] = []
        for entry in table.all where entry.job.crashes > 0 {
            entry.job.crashes = 0
            reset.append(entry.job)
        }
        for job in suspects.values.sorted(by: { $0.id < $1.id }) {
            var job = job
            job.crashes = 0
            reset.append(job)
        }
        // After a clean stop crashes are counted from zero again.
        if !reset.isEmpty { write(.save(reset)) { _ in } }
    }
}
