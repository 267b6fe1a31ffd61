import JobModel

/// Lists and races: makes child jobs and waits for their outcomes.
extension JobCore {
    func startList(_ entry: ActiveJob, _ source: ChildMaker.Source) {
        let job = entry.job
        // A list that was open before a restart goes on: its children do not run without it.
        let mayBeOpen = entry.isResumed
        entry.isResumed = false
        guard mayBeOpen || mayOpen(entry, wasOpen: false) else { return }
        // They can be those of an earlier link.
        guard job.children > 0 else { return makeChildren(entry, source) }
        let step = entry.step
        read(.childStates(of: job.id, link: job.link)) { [unowned self] result in
            guard table[job.id] === entry, entry.step == step, phase == .serving else { return }
            guard case .success(.childStates(let states)) = result else {
                log(.error, "The children cannot be read: \(Self.error(of: result).message)", job: job.id)
                entry.isResumed = mayBeOpen
                unreadLists.append((job.id, step))
                return setTimer(.readAgain, in: 1)
            }
            guard mayOpen(entry, wasOpen: !states.isEmpty) else { return }
            if states.isEmpty { return makeChildren(entry, source) }
            join(entry, ids: states.map(\.id), states.map(\.state), source.mode, source.concurrency)
        }
    }

    /// Gives a list what it needs to be open, or lets it wait for that. One that was open needs no room.
    private func mayOpen(_ entry: ActiveJob, wasOpen: Bool) -> Bool {
        let job = entry.job
        let key = job.parent.map { ConcurrencyKey.nestedLists(depth: $0.depth) } ?? .lists
        if entry.permit?.key != key {
            releasePermit(entry)
            let size = Int(job.memorySize)
            guard
                let permit = wasOpen
                    ? scheduler.acquireAnyway(key, for: job.owner, bytes: size)
                    : scheduler.acquire(key, for: job.owner, bytes: size)
            else {
                park(entry, for: key)
                return false
            }
            entry.permit = permit
        }
        releaseSlot(entry)
        return true
    }

    private func makeChildren(_ entry: ActiveJob, _ source: ChildMaker.Source) {
        if let error = refusal(ofChildren: source.count, of: entry.job.owner) {
            return stepEnded(entry, .failure(error))
        }
        if source.count == 0 { return join(entry, ids: [], [], source.mode, nil) }
        making[entry.job.id] = ChildMaker(source, of: entry.job, step: entry.step)
        makeChildren(of: entry.job.id)
    }

    /// Makes the next children of a list, and the others when it is its owner's turn again.
    private func makeChildren(of list: JobID) {
        guard phase == .serving, var maker = making.removeValue(forKey: list) else { return }
        guard let entry = table[list], entry.step == maker.step else { return }
        let owner = entry.job.owner
        // Also in one that takes no new jobs: these came with the list.
        maker.makeSome(of: entry.job, admission, at: now.wall) { name, isAccepted in
            if isAccepted, !scheduler.has(queue: name) { openForgotten(name) }
            return scheduler.has(queue: name)
        }
        guard maker.isDone else {
            making[list] = maker
            return inTurn(of: entry) { [unowned self] in makeChildren(of: list) }
        }
        // Other lists may have made theirs in the turns in between.
        if let error = refusal(ofChildren: maker.count, of: owner) { return stepEnded(entry, .failure(error)) }
        guard storedBytes(of: owner).saturatingAdding(maker.bytes) <= settings.storedPerUser else {
            return stepEnded(
                entry,
                .failure(
                    JobError(
                        .tooLarge,
                        "The list's children take up \(maker.bytes) bytes, and you have \(settings.storedPerUser) in all; "
                            + "remove jobs that are over, then retry it.")))
        }
        entry.job.children += maker.count
        let made = maker
        submitting.add(made.count, bytes: made.bytes, of: owner)
        write(.children(NewChildren(parent: entry.job, template: made.template, children: made.children))) {
            [unowned self] result in
            submitting.add(-made.count, bytes: -made.bytes, of: owner)
            stored(made, entry, result)
        }
    }

    /// Why an owner may not have so many more jobs that wait.
    private func refusal(ofChildren count: Int, of owner: UInt32) -> JobError? {
        let limits = settings.limits
        let own = counters.waiting(of: owner) + submitting.jobs(of: owner) + count
        let all = counters.allWaiting + submitting.all + count
        if own <= limits.queuedJobsPerUser, all <= limits.queuedJobs, !hasTooManyResting(owner) { return nil }
        return JobError(
            .tooLarge, "The list's \(count) children would be too many waiting jobs; retry it when some have run.")
    }

    private func stored(_ made: ChildMaker, _ entry: ActiveJob, _ result: Result<StoreWritten, StoreError>) {
        guard phase == .serving else { return }
        let isCurrent = table[made.job] === entry && entry.step == made.step
        switch result {
        case .failure(let error):
            guard isCurrent else { return }
            entry.job.children -= made.count
            stepEnded(entry, .failure(JobError(.storage, "The children cannot be stored: \(error.message)")))
        case .success(.numbered(let ids)):
            guard ids.count == made.children.count else { return }
            for child in made.children {
                counters.add(1, owner: entry.job.owner, queue: child.queue, child.state)
                counters.addBytes(child.size, entry.job.owner, child.state)
                if child.state == .failed { count(entry.job.owner) { $0.failed += 1 } }
            }
            statusVersion += 1
            logAccepted(made, ids, of: entry.job)
            notifyFailed(made, ids, entry.job)
            guard isCurrent else { return stopLater(ids) }
            join(entry, ids: ids, made.children.map(\.state), made.mode, made.concurrency)
            makeReady(made, ids, entry)
        case .success: break
        }
    }

    /// Notifies of children that failed because their spec is not valid.
    private func notifyFailed(_ made: ChildMaker, _ ids: [JobID], _ parent: Job) {
        guard !subscriptions.isEmpty else { return }
        for (index, child) in made.children.enumerated() where child.state.isTerminal {
            guard let spec = try? child.spec(template: made.template) else { continue }
            var job = child.job(of: parent, spec)
            job.id = ids[index]
            notify(job)
        }
    }

    private func makeReady(_ made: ChildMaker, _ ids: [JobID], _ parent: ActiveJob) {
        // A read can have found and started some of them before the write's answer came.
        for (index, child) in made.children.enumerated() where !child.state.isTerminal && table[ids[index]] == nil {
            if let deadline = child.deadlineAt { setWallTimer(.deadline, at: deadline) }
            if let time = child.notBefore { setWallTimer(.due, at: time) }
            if var job = made.jobs[index] {
                job.id = ids[index]
                notify(job)
                if child.notBefore == nil, !child.isGated { enqueue(job) }
            } else if child.notBefore == nil, !child.isGated {
                let parentage = parent.job.parentage(ofChild: child.index)
                let key = child.source?.hasChildren == true ? ConcurrencyKey.none : ConcurrencyKey(host: child.host)
                scheduler.insert(
                    ReadyWindow.Entry(
                        ReadyPosition(priority: child.priority, id: ids[index]), key, parent: parentage, job: nil,
                        isPinned: false), queue: child.queue, owner: parent.job.owner)
            }
        }
    }

    // MARK: - Waiting for children

    /// Begins to wait for children, some of which may have ended before.
    private func join(
        _ entry: ActiveJob, ids: [JobID], _ stored: [JobState], _ mode: ListMode, _ concurrency: Int?
    ) {
        var join = ListJoin(mode: mode, ids: ids)
        var last = ListJoin.Action.none
        var mustCancel = false
        // Those that run or rest have started, and those that are still to be resumed have.
        var active: Set<JobID> = []
        for (index, id) in ids.enumerated() {
            var state = stored[index]
            if case .left(let job) = table.known(id) { state = job.state }
            if table[id] != nil || state == .running { active.insert(id) }
            guard state.isTerminal else { continue }
            last = join.childEnded(index, state)
            if last == .cancelRest { mustCancel = true }
        }
        active.formIntersection(join.open)
        lists.open(join, link: entry.job.link, concurrency: concurrency, active: active, of: entry.job.id)
        if ids.isEmpty || last == .end { return endList(entry) }
        if let seconds = entry.job.stepTimeout { setTimer(.list(entry.job.id), in: seconds) }
        if mustCancel { stopLater(join.open) }
    }

    /// Admits as many children of a list as its gate has room for.
    func readGated(_ list: JobID) {
        guard !timers.isSet(.readAgain), let request = lists.request(of: list) else { return }
        let ask = StoreRead.gated(of: list, link: request.link, from: request.from, limit: request.limit)
        read(ask) { [unowned self] result in
            guard let entry = table[list] else { return }
            guard case .success(.ready(let rows)) = result else {
                log(.error, "The children cannot be read: \(Self.error(of: result).message)", job: list)
                setTimer(.readAgain, in: 1)
                return lists.readFailed(request)
            }
            for row in lists.received(request, rows, present: presentChild) {
                let key = row.job.map(ConcurrencyKey.init) ?? ConcurrencyKey(host: row.host)
                let queue = row.job?.spec.queue ?? entry.job.spec.queue
                scheduler.insert(
                    ReadyWindow.Entry(row.position, key, parent: row.parent, job: row.job, isPinned: true),
                    queue: queue, owner: entry.job.owner)
            }
        }
    }

    /// A row of a child that waits for its gate, as it is now; nil where it does not wait for that any more.
    private func presentChild(_ row: ReadyJob) -> ReadyJob? {
        switch table.known(row.position.id) {
        case .active, .removed: return nil
        case .left(let job):
            guard job.state == .queued else { return nil }
            return ReadyJob(position: row.position, host: job.host, parent: job.parent, job: job.keptInWindow)
        case nil: return row
        }
    }

    /// A child is over.
    func childEnded(_ parentage: Job.Parent, _ child: Job, bytes: Int64) {
        guard let entry = table[parentage.job], entry.job.link == parentage.link,
            lists[parentage.job]?.link == parentage.link
        else {
            return
        }
        let action = lists.childEnded(child.id, at: parentage.index, child.state, bytes: bytes, of: parentage.job)
        markProgress(of: entry)
        switch action {
        case .none: break
        case .cancelRest: stopLater(lists[parentage.job]?.join.open ?? [])
        case .end: endList(entry)
        }
    }

    /// A list took longer than its timeout.
    func listTimedOut(_ id: JobID) {
        guard let entry = table[id], let list = lists[id] else { return }
        let open = list.join.open
        let seconds = entry.job.stepTimeout ?? 0
        stepEnded(
            entry,
            .failure(
                JobError(.timeout, "The list took longer than its timeout of \(JSON(seconds)) seconds; allow it more."))
        )
        stopLater(open)
    }

    /// The list or the timer of a job is over.
    func closeList(_ entry: ActiveJob) {
        making[entry.job.id] = nil
        timers.clear(.list(entry.job.id))
        lists.close(entry.job.id)
        if entry.permit?.key.isKeptWaiting == true { releasePermit(entry) }
    }
}
