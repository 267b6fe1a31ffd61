import JobModel

/// All changes of rows, so that counts, deadlines, windows and subscribers stay up to date.
extension Core {
    /// Stores a job changed from `old` and tells its subscribers; `isPassing` if the round may change it again.
    func store(_ row: inout JobRow, was old: JobRow, isPassing: Bool = false, _ round: Round) throws(StoreError) {
        row.version = old.version + 1
        try round.transaction.update(row)
        quotas.remove(old)
        quotas.add(row)
        agenda.note(row)
        if old.isSuspect, old.run != nil { agenda.hasClearedSuspect = true }
        if old.run != nil, old.run != row.run { pending.waits.append(.happened(.stop(row.id))) }
        // A job that starts has already left its window.
        let hasMoved =
            old.isReady != row.isReady || old.host != row.host || old.queue != row.queue
            || old.priority != row.priority || old.node != row.node
        if old.isReady, hasMoved, row.state != .running { scheduler.remove(old) }
        if row.isReady, hasMoved, runsHere(row) { scheduler.insert(row) }
        if row.state != old.state || row.link != old.link { try tell(row, isPassing: isPassing, round) }
    }

    /// Stores a job as `body` changes it, and returns it.
    @discardableResult
    func change(_ old: JobRow, _ round: Round, _ body: (inout JobRow) -> Void) throws(StoreError) -> JobRow {
        var row = old
        body(&row)
        try store(&row, was: old, round)
        return row
    }

    /// Counts an inserted job and offers it to the scheduler if it is ready.
    func inserted(_ row: JobRow, _ round: Round) throws(StoreError) {
        quotas.add(row)
        agenda.note(row)
        log(row, .accepted, round)
        try tell(row, round)
        // A list can name a queue that left the configuration after the list was accepted.
        let startsHere = row.isReady && runsHere(row)
        guard !(startsHere ? scheduler.insert(row) : scheduler.has(queue: row.queue)) else { return }
        openQueue(row.queue)
        showQueues()
        if startsHere { scheduler.insert(row) }
    }

    /// Whether this node may run a job.
    func runsHere(_ row: JobRow) -> Bool { settings.node == nil || row.node == nil || row.node == settings.node }

    /// Tells the subscribers of a job its current state.
    func tell(_ row: JobRow, isPassing: Bool = false, _ round: Round) throws(StoreError) {
        guard !subscriptions.isEmpty, !row.isRemoving else { return }
        let ancestors = subscriptions.coverDescendants ? try ancestors(of: row, round) : []
        let subscribers = subscriptions.covering(row, below: ancestors, told: pending.ended[row.id] ?? [])
        guard !subscribers.isEmpty else { return }
        let document = row.specSize <= JobDetail.longestBriefSpec ? try round.transaction.document(of: row.id) : nil
        var template: StoredValue?
        if case .item? = document { template = try self.template(of: row, round) }
        pending.tell(
            subscribers, JobChange(row: row, document: document, template: template), isPassing: isPassing)
    }

    private func template(of row: JobRow, _ round: Round) throws(StoreError) -> StoredValue? {
        guard let parent = row.parent, let list = try round.transaction.list(of: parent.job), list.id == parent.list
        else { return nil }
        return list.template
    }

    /// Stores an open list and publishes its progress.
    func put(_ list: ListRow, _ round: Round) throws(StoreError) {
        try round.transaction.put(list)
        pending.emit(.list(list.job, list))
    }

    /// Returns the ancestors of a job, nearest first.
    func ancestors(of row: JobRow, _ round: Round) throws(StoreError) -> [JobRow] {
        var ancestors: [JobRow] = []
        var next = row.parent
        // A damaged row can be its own ancestor; it must not block the engine.
        while let parent = next, ancestors.count < 256, let above = try round.transaction.job(parent.job) {
            ancestors.append(above)
            next = above.parent
        }
        return ancestors
    }

    /// Returns whether a list above a job is over, decided, being stopped or removed, so that the job must not start.
    /// A stopped job still runs its `finally` links and their descendants.
    func isBelowStopped(_ row: JobRow, _ round: Round) throws(StoreError) -> Bool {
        var child = row
        var depth = 0
        while child.stop == nil, let parent = child.parent {
            depth += 1
            guard depth <= 256, let above = try round.transaction.job(parent.job), !above.isRemoving,
                !above.state.isTerminal, above.link == parent.link, above.stop == nil || above.isAtFinally,
                let list = try round.transaction.list(of: parent.job), list.id == parent.list, list.decided == nil
            else { return true }
            child = above
        }
        return false
    }

    /// Starts a run of a job's current link in the slot that the job holds.
    func begin(_ row: inout JobRow, was old: JobRow, host: String? = nil, _ round: Round) throws(StoreError) {
        let run = experience.nextRun()
        row.begin(run, at: round.now)
        try store(&row, was: old, round)
        log(row, .started, round)
        let isShort = row.storedSpecSize <= settings.limits.inlineResult
        let live = LiveRun(
            run: run, job: row.id, owner: row.owner, queue: row.queue, hasSlot: true, host: host,
            permits: host == nil ? 0 : 1, endsLater: row.step?.source?.endsLater == true)
        order(.step, live, row, document: isShort ? try round.transaction.document(of: row.id) : nil)
    }

    /// Starts a run that needs no slot, as it only reads and writes files.
    func begin(_ kind: RunOrder.Kind, _ old: JobRow, _ round: Round) throws(StoreError) {
        let run = experience.nextRun()
        let row = try change(old, round) { row in
            row.run = run
            row.due = nil
        }
        order(kind, LiveRun(run: run, job: row.id, owner: row.owner, queue: row.queue, hasSlot: false), row)
    }

    private func order(
        _ kind: RunOrder.Kind, _ live: LiveRun, _ row: JobRow, document: NewJobRow.Document? = nil
    ) {
        running.insert(live)
        let room = quotas.room(of: row.owner, settings)
        pending.emit(.start(RunOrder(live: live, kind: kind, job: row, document: document, room: room)))
    }

    /// Tells a run to stop. Its end arrives later as an input.
    func cancel(_ live: LiveRun, keepsPart: Bool = false) {
        guard !live.isStopping else { return }
        var live = live
        live.isStopping = true
        running.update(live)
        pending.emit(.cancel(live.run, keepsPart: keepsPart))
    }

    /// Stores work for later rounds.
    @discardableResult
    func add(_ work: WorkRow, _ round: Round) throws(StoreError) -> WorkRow {
        var work = work
        work.id = try round.transaction.add(work)
        if work.kind == .removeParts { removeFiles(work) } else { agenda.hasWork = true }
        return work
    }

    func removeFiles(_ work: WorkRow) {
        experience.cleaning.insert(work.id)
        pending.emit(.removeFiles(work))
    }
}
