import JobModel

/// Gives slots to jobs that are ready.
extension JobCore {
    /// Puts a stored job that became ready in its queue's window.
    func enqueue(_ job: Job) {
        if job.isGated, let parent = job.parent {
            // No gate finds a child of a list that is over: a crash can have come between the end of the list and its own.
            guard isRunning(parent) else { return stopLater([job.id]) }
            return lists.childReturned(job.id, at: parent.index, of: parent.job)
        }
        insert(
            ReadyWindow.Entry(
                ReadyPosition(priority: job.spec.priority, id: job.id), ConcurrencyKey(job), parent: job.parent,
                job: job.keptInWindow, isPinned: false),
            job)
    }

    /// Lets a job wait for a slot and for `key`, in the middle of its chain.
    func park(_ entry: ActiveJob, for key: ConcurrencyKey) {
        entry.isParked = true
        releaseAll(entry)
        insert(
            ReadyWindow.Entry(
                ReadyPosition(priority: entry.job.spec.priority, id: entry.job.id), key, parent: entry.job.parent,
                job: nil, bytes: entry.job.memorySize, isPinned: true),
            entry.job)
        // What waits is in the store only.
        if entry.isStored { restIfWaiting(entry) } else if entry.unsaved == nil { save(entry, then: .none) }
    }

    private func insert(_ window: ReadyWindow.Entry, _ job: Job) {
        scheduler.insert(window, queue: job.spec.queue, owner: job.owner)
    }

    /// Starts what can start, and reads more jobs where windows run low. The last thing that is done about each input.
    func startWhatCan() {
        resumeSome()
        guard phase == .serving, unresumed == nil else { return }
        stopSome()
        wakeResting()
        if storageFailure == nil, !hasTooMuchPending { scheduler.startAll { start($0) } }
        for list in lists.gated { readGated(list) }
        guard storageFailure == nil, !timers.isSet(.readAgain) else { return }
        for request in scheduler.requests() { readReady(request) }
    }

    private func readReady(_ request: Scheduler.Request) {
        let ask = StoreRead.ready(
            queue: request.queue, owner: request.owner, after: request.after, excluding: request.excluding,
            limit: request.limit)
        read(ask) { [unowned self] result in
            guard case .success(.ready(let rows)) = result else {
                log(.error, "The ready jobs cannot be read: \(Self.error(of: result).message)", queue: request.queue)
                setTimer(.readAgain, in: 1)
                return scheduler.readFailed(request)
            }
            let entries = rows.compactMap(readyEntry)
            scheduler.received(request, entries, rows: rows.count, last: rows.last?.position)
        }
    }

    /// The window's entry for a row of a ready job; nil where the job is no longer ready, or is in memory.
    private func readyEntry(_ row: ReadyJob) -> ReadyWindow.Entry? {
        var job = row.job
        switch table.known(row.position.id) {
        case .active, .removed: return nil
        case .left(let left):
            guard left.state == .queued, !left.isGated else { return nil }
            job = left.keptInWindow
        case nil: break
        }
        let key = job.map(ConcurrencyKey.init) ?? ConcurrencyKey(host: row.host)
        return ReadyWindow.Entry(row.position, key, parent: row.parent, job: job, isPinned: false)
    }

    /// Starts a job whose turn has come, or lets it go on, with its slot and permit.
    private func start(_ turn: Scheduler.Turn) {
        let id = turn.entry.position.id
        if let entry = table[id] { return goOn(entry, turn) }
        if let job = turn.entry.job {
            guard mayStart(job) else { return giveBack(turn) }
            let entry = activate(job)
            entry.slot = turn.slot
            entry.permit = turn.permit
            return begin(entry)
        }
        // The slot is kept meanwhile.
        read(.jobs([id])) { [unowned self] result in
            if case .failure(let error) = result {
                log(.error, "Job \(id) cannot be read: \(error.message)", job: id)
                giveBack(turn)
                unread.append(turn)
                return setTimer(.readAgain, in: 1)
            }
            guard phase == .serving else { return giveBack(turn) }
            if let entry = table[id] { return goOn(entry, turn) }
            guard case .success(.jobs(let rows)) = result, let row = rows.first, let job = table.present(row) else {
                // What cannot be read by itself goes on with the next daemon, if ever.
                if resting[id]?.reason == .turn { dropRest(id) }
                return giveBack(turn)
            }
            if resting[id]?.reason == .turn {
                // Where its list gave it up, it waits to be stopped.
                guard let entry = wake(job) else { return giveBack(turn) }
                return goOn(entry, turn)
            }
            guard job.state == .queued, mayStart(job) else { return giveBack(turn) }
            // It can have been cancelled and retried meanwhile, and be in the window again.
            scheduler.remove(id, queue: job.spec.queue, owner: job.owner)
            guard job.spec.queue == turn.slot.queue else {
                // A gated child whose row has no queue.
                giveBack(turn)
                return scheduler.insert(turn.entry, queue: job.spec.queue, owner: job.owner)
            }
            var permit = turn.permit
            if ConcurrencyKey(job) == .lists {
                // Only now its size is known and, where an earlier version stored it, that it is a list.
                if let permit { scheduler.release(permit) }
                permit = scheduler.acquire(.lists, for: job.owner, bytes: Int(job.memorySize))
                guard permit != nil else {
                    scheduler.release(turn.slot)
                    return insert(
                        ReadyWindow.Entry(
                            turn.entry.position, .lists, parent: nil, job: nil, bytes: job.memorySize, isPinned: false),
                        job)
                }
            }
            let entry = activate(job)
            entry.slot = turn.slot
            entry.permit = permit
            begin(entry)
        }
    }

    /// The turn of a job in memory has come, where it waits for one.
    private func goOn(_ entry: ActiveJob, _ turn: Scheduler.Turn) {
        guard entry.isParked else { return giveBack(turn) }
        entry.isParked = false
        // It may have begun to wait again while it was read.
        scheduler.remove(entry.job.id, queue: entry.job.spec.queue, owner: entry.job.owner)
        entry.slot = turn.slot
        if let permit = turn.permit {
            releasePermit(entry)
            entry.permit = permit
        }
        runStep(entry)
    }

    /// What could not be read is read again.
    func readAgain() {
        if mustCancelOrphans {
            mustCancelOrphans = false
            cancelOrphans()
        }
        readAncestorsAgain()
        let lists = unreadLists
        unreadLists = []
        for list in lists {
            if let entry = table[list.job], entry.step == list.step { runStep(entry) }
        }
        let stoppedLists = stopChildrenAgain
        stopChildrenAgain = []
        for (list, link) in stoppedLists { stopChildren(of: list, link: link) }
        let stopped = stopAgain
        stopAgain = []
        stopLater(stopped)
        let turns = unread
        unread = []
        for turn in turns {
            let id = turn.entry.position.id
            // It can have been stopped meanwhile, and wait for a time at a `finally` link.
            if let rest = resting[id], rest.reason != .turn { continue }
            switch table.known(id) {
            case .active(let entry): if !entry.isParked { continue }
            case .removed: continue
            case .left(let job): if job.state != .queued, resting[id]?.reason != .turn { continue }
            case nil: break
            }
            scheduler.insert(turn.entry, queue: turn.slot.queue, owner: turn.slot.owner)
        }
    }

    private func giveBack(_ turn: Scheduler.Turn) {
        scheduler.release(turn.slot)
        if let permit = turn.permit { scheduler.release(permit) }
    }

    /// Whether the list that a child belongs to lets it start now.
    private func mayStart(_ job: Job) -> Bool {
        guard let parent = job.parent, job.stop == nil else { return true }
        guard isRunning(parent) else {
            // The list is finished, so a child that is left over is cancelled.
            stopLater([job.id])
            return false
        }
        return lists.mayStart(job.id, of: parent.job)
    }

    /// Takes a job into memory that rested, where the list that it may belong to lets it go on.
    func wake(_ job: Job) -> ActiveJob? {
        guard mayGoOn(job) else { return nil }
        let entry = activate(job)
        if job.isAtFinally, isGivenUp(job) { stop(entry, .cancelled, nil) }
        return entry
    }

    /// Whether its list lets a child go on. A `finally` link does in any case, but then no other link behind it.
    private func mayGoOn(_ job: Job) -> Bool { job.isAtFinally || mayStart(job) }

    /// Whether the list that a child belongs to has given it up, so that it is to be stopped.
    private func isGivenUp(_ job: Job) -> Bool {
        guard let parent = job.parent, job.stop == nil else { return false }
        return !isRunning(parent) || lists.isDecided(parent.job)
    }

    /// Whether a list runs the link that a child belongs to.
    private func isRunning(_ parent: Job.Parent) -> Bool {
        table[parent.job]?.job.isRunningList(parent.link) == true
    }

    private func begin(_ entry: ActiveJob) {
        if entry.job.isOverdue(at: now.wall) { return stop(entry, .deadline, nil) }
        // It was said when it was put off before its first attempt, and will be when it ends.
        let isPostponed = entry.job.lastFailure != nil && entry.job.attempt == 0
        do {
            _ = try transition(entry, .start)
        } catch {
            expect(false, "Job \(entry.job.id) is \(error.state.rawValue) and got a slot.", job: entry.job.id)
            releaseSlot(entry)
            releasePermit(entry)
            return deactivate(entry)
        }
        if !isPostponed { log(entry.job, .started) }
        notify(entry.job)
        runStep(entry)
    }

    // MARK: - Giving back

    func releaseSlot(_ entry: ActiveJob) {
        guard let slot = entry.slot else { return }
        entry.slot = nil
        scheduler.release(slot)
    }

    func releasePermit(_ entry: ActiveJob) {
        guard let permit = entry.permit else { return }
        entry.permit = nil
        scheduler.release(permit)
    }

    /// Gives back what let a run have more than one connection.
    func releaseSparePermits(_ entry: ActiveJob) {
        for permit in entry.sparePermits { scheduler.release(permit) }
        entry.sparePermits = []
    }

    /// Gives back slot and permit of a job, but for the permit that an open list keeps until it is closed.
    func releaseAll(_ entry: ActiveJob) {
        releaseSlot(entry)
        if entry.permit?.key.isKeptWaiting != true { releasePermit(entry) }
    }
}

extension Job {
    /// It, where it is small enough to be in its queue's window whole; a larger one is read when its turn comes.
    var keptInWindow: Job? { spec.size <= ReadyJob.largestInline ? self : nil }

    /// Whether the children that link `link` made still count: a stop ends every list but one of a `finally` link.
    func isRunningList(_ link: Int) -> Bool {
        state == .running && self.link == link && (stop == nil || isAtFinally)
    }
}
