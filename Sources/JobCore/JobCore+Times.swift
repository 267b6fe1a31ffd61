import JobModel

/// What happens when a time has come.
extension JobCore {
    /// Seconds from the end of a job, or from a purge that found nothing, to the next purge at the earliest.
    static let purgeInterval = 60.0
    /// Jobs that are read at once for their time.
    private static let page = 512

    func fireTimers() {
        guard phase == .serving else { return }
        while let timer = timers.popDue(at: now.monotonic) { fire(timer) }
        while let timer = wallTimers.popDue(at: now.wall.milliseconds) { fire(timer) }
    }

    private func fire(_ timer: CoreTimer) {
        switch timer {
        case .due: startDue()
        case .deadline: stopOverdue()
        case .host(let host): scheduler.reopen(host: host)
        case .progress(let interval): tellProgress(interval)
        case .wait(let request):
            guard waits.remove(request) || beginningWaits.remove(request) != nil else { break }
            fail(request, CoreError(.timeout, "The wait ran out of time."))
        case .list(let job): listTimedOut(job)
        case .timer(let job): timerFired(job)
        case .retention: purge()
        case .storage:
            write(.probe) { [unowned self] result in storageAnswered(result.map { _ in }) }
        case .readAgain: readAgain()
        }
    }

    /// Sets the timers for what the store says comes next, but not before `soonest` seconds.
    func setTimes(_ times: StoredTimes, soonest: Double = 0) {
        let earliest = now.wall.adding(seconds: soonest)
        if let due = times.due { setWallTimer(.due, at: max(due, earliest)) }
        if let deadline = times.deadline { setWallTimer(.deadline, at: max(deadline, earliest)) }
    }

    private func startDue() {
        read(.due(at: now.wall, limit: Self.page)) { [unowned self] result in
            guard phase == .serving else { return }
            guard case .success(.jobs(let rows)) = result else {
                log(.error, "The scheduled jobs cannot be read: \(Self.error(of: result).message)")
                return setWallTimer(.due, at: now.wall.adding(seconds: 1))
            }
            for row in rows {
                guard table[row.id] == nil, let job = table.present(row), job.state == .scheduled,
                    job.notBefore.map({ $0 <= now.wall }) ?? true
                else { continue }
                let entry = activate(job)
                guard (try? transition(entry, .due)) != nil else {
                    deactivate(entry)
                    continue
                }
                save(entry, then: .enqueue)
            }
            readTimes()
        }
    }

    private func stopOverdue() {
        read(.overdue(at: now.wall, limit: Self.page)) { [unowned self] result in
            guard phase == .serving else { return }
            guard case .success(.jobs(let rows)) = result else {
                log(.error, "The deadlines cannot be read: \(Self.error(of: result).message)")
                return setWallTimer(.deadline, at: now.wall.adding(seconds: 1))
            }
            // A job that was retried meanwhile has another deadline, which counts once the retry is stored.
            for row in rows where table.present(row)?.isOverdue(at: now.wall) == true {
                if table[row.id]?.isBeingRetried != true { stop(row, .deadline) }
            }
            readTimes()
        }
    }

    /// Not at once, as the store still gives jobs whose change is on its way.
    private func readTimes() {
        read(.times) { [unowned self] result in
            guard case .success(.times(let times)) = result else {
                setWallTimer(.due, at: now.wall.adding(seconds: 1))
                return setWallTimer(.deadline, at: now.wall.adding(seconds: 1))
            }
            setTimes(times, soonest: 0.1)
        }
    }

    // MARK: - Old jobs

    func purge() {
        let before = now.wall.adding(seconds: -settings.retentionAge)
        let mayBeTooLarge = counters.finishedBytes > settings.retentionBytes
        let write = StoreWrite.purge(finishedBefore: before, keeping: settings.retentionCount, atMost: 500)
        self.write(write) { [unowned self] result in
            guard case .success(.removed(let removed)) = result else {
                return setTimer(.retention, in: Self.purgeInterval)
            }
            forget(removed) {}
            if !removed.isEmpty { return setTimer(.retention, in: 0.05) }
            if mayBeTooLarge, counters.finishedBytes > settings.retentionBytes { return purgeOldest() }
            awaitNextExpiry()
        }
    }

    private func purgeOldest() {
        write(.purgeOldest(count: 64)) { [unowned self] result in
            guard case .success(.removed(let removed)) = result, !removed.isEmpty else {
                return setTimer(.retention, in: Self.purgeInterval)
            }
            forget(removed) {}
            setTimer(.retention, in: 0.05)
        }
    }

    /// Sets the timer for when the next finished job is too old; where there is none, the next one that ends sets it.
    private func awaitNextExpiry() {
        read(.times) { [unowned self] result in
            guard case .success(.times(let times)) = result else {
                return setTimer(.retention, in: Self.purgeInterval)
            }
            guard let first = times.firstEnd else { return }
            let soonest = now.wall.adding(seconds: Self.purgeInterval)
            setWallTimer(.retention, at: max(soonest, first.adding(seconds: settings.retentionAge)))
        }
    }

    /// Drops all state of jobs that the store removed, and has their files removed; then calls `done`.
    func forget(_ removed: [RemovedJob], _ done: @escaping () -> Void) {
        guard !removed.isEmpty else { return done() }
        for job in removed {
            let entry = table[job.id]
            counters.remove(job, countedAs: entry?.job.state ?? job.state, stored: entry?.stored)
            if let entry {
                entry.isRemoved = true
                cancelRun(entry)
                entry.step += 1
                closeList(entry)
                releaseAll(entry)
                releasePermit(entry)
                answerAwaiting(entry, .success(()))
            }
            table.remove(job.id, isRemoved: true)
            if let entry { resumePostponed(entry) }
            suspects[job.id] = nil
            pendingNotifications[job.id] = nil
            scheduler.remove(job.id, queue: job.queue, owner: job.owner)
            for wait in waits.finished(job.id) { answer(wait, having: nil) }
        }
        statusVersion += 1
        emit(.cleanUp(cleanUp(done), removed))
    }
}
