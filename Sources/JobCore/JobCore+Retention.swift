import JobModel

/// Removes finished jobs that are too old, too many, or take up too much.
extension JobCore {
    /// Seconds from the end of a job, or from a purge that found nothing, to the next purge at the earliest.
    static let purgeInterval = 60.0

    func purge() {
        let before = retentionClock.now(now, age: settings.retentionAge).adding(seconds: -settings.retentionAge)
        let mayBeTooLarge = counters.finishedBytes > settings.retentionBytes
        let write = StoreWrite.purge(finishedBefore: before, keeping: settings.retentionCount, atMost: 500)
        self.write(write) { [unowned self] result in
            guard case .success(.removed(let removed)) = result else {
                return setTimer(.retention, in: Self.purgeInterval)
            }
            forget(removed) {}
            if !removed.isEmpty { return setTimer(.retention, in: 0.05) }
            if mayBeTooLarge, counters.finishedBytes > settings.retentionBytes { return purgeLargest() }
            awaitNextExpiry()
        }
    }

    /// Purges of the owner whose finished jobs take up most, so that nobody's results go for another's. `passed` have none
    /// that can go, as theirs are below jobs that are not finished.
    private func purgeLargest(passing passed: Set<UInt32> = []) {
        guard let owner = counters.largestFinished(above: settings.retentionBytes, except: passed) else {
            return setTimer(.retention, in: Self.purgeInterval)
        }
        let excess = counters.finishedBytes.saturatingSubtracting(settings.retentionBytes)
        write(.purgeOldest(count: 64, freeing: excess, owner: owner)) { [unowned self] result in
            guard case .success(.removed(let removed)) = result else {
                return setTimer(.retention, in: Self.purgeInterval)
            }
            guard !removed.isEmpty else { return purgeLargest(passing: passed.union([owner])) }
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
            let expiry = first.adding(seconds: settings.retentionAge)
            if let seconds = retentionClock.secondsToBelieve(now, age: settings.retentionAge) {
                // The time of day says nothing yet; at the latest it does when the leap counts.
                let present = retentionClock.now(now, age: settings.retentionAge)
                return setTimer(.retention, in: max(Self.purgeInterval, min(seconds, expiry.seconds(since: present))))
            }
            setWallTimer(.retention, at: max(now.wall.adding(seconds: Self.purgeInterval), expiry))
        }
    }

    /// Drops all state of jobs that the store removed, and has their files removed; then calls `done`.
    func forget(_ removed: [RemovedJob], _ done: @escaping () -> Void) {
        guard !removed.isEmpty else { return done() }
        tellEnds(of: removed)
        tellPending(of: removed)
        for job in removed {
            let entry = table[job.id]
            counters.remove(job, countedAs: entry?.job.state ?? job.state, stored: entry?.stored)
            if let entry {
                entry.isRemoved = true
                abandonRun(entry)
                entry.step += 1
                closeList(entry)
                releaseAll(entry)
                releasePermit(entry)
                answerAwaiting(entry, .success(()))
            }
            dropRest(job.id)
            table.remove(job.id, isRemoved: true)
            if let entry { resumePostponed(entry) }
            suspects[job.id] = nil
            schedules.jobEnded(job.id, isGone: true)
            scheduler.remove(job.id, queue: job.queue, owner: job.owner)
            for wait in waits.finished(job.id) { answer(wait, having: nil) }
        }
        statusVersion += 1
        emit(.cleanUp(cleanUp(done), removed))
    }

    /// Tells of those removed jobs that they ended whose end is stored and was not told: it waits for its owner's turn, or
    /// the save that counted was a repeated one, and failed.
    private func tellEnds(of removed: [RemovedJob]) {
        let ended = removed.compactMap { table[$0.id] }.filter { $0.job.state.isTerminal && $0.isStored }
        for entry in ended {
            countEnd(of: entry.job)
            tellEnd(of: entry)
        }
    }
}
