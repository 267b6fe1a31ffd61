import JobModel

/// Lets jobs that wait in the middle of their chains leave the memory, and reads them when they go on.
extension JobCore {
    /// Jobs that are read at once when their time has come; those that are large are fewer.
    static let mostWoken = 64
    /// Seconds after which one that cannot be read is read again.
    private static let unreadableDelay = 10.0

    /// Lets a job leave the memory where it waits for a time or for its turn, and is stored as it is.
    func restIfWaiting(_ entry: ActiveJob) {
        let id = entry.job.id
        guard phase == .serving, table[id] === entry, entry.isSettled else { return }
        let reason: RestingJobs.Reason
        if entry.isParked {
            reason = .turn
        } else if timers.isSet(.timer(id)) {
            reason = .timer(isTooLong: entry.isTimerTooLong)
        } else {
            return
        }
        resting.insert(entry.job, reason, entry.permit)
        entry.permit = nil
        deactivate(entry)
    }

    /// A job that rested is in memory, and waits as before.
    func takeOver(_ rest: RestingJobs.Rest, _ entry: ActiveJob) {
        entry.permit = rest.permit
        switch rest.reason {
        case .turn: entry.isParked = true
        case .timer(let isTooLong):
            entry.isTimerTooLong = isTooLong
            if rest.isDue { setTimer(.timer(entry.job.id), in: 0) }
        }
    }

    /// A job that rests is gone.
    func dropRest(_ id: JobID) {
        guard let rest = resting.remove(id) else { return }
        if let permit = rest.permit { scheduler.release(permit) }
        switch rest.reason {
        case .timer: timers.clear(.timer(id))
        case .turn: scheduler.remove(id, queue: rest.queue, owner: rest.owner)
        }
    }

    /// Reads jobs whose time has come, as many at once as may be in memory together, an owner at a time.
    func wakeResting() {
        guard phase == .serving, !isWaking, storageFailure == nil, !hasTooMuchPending, !timers.isSet(.readAgain)
        else {
            return
        }
        let ids = resting.nextDue(mostWoken) { !hasTooMuchPending(of: $0) }
        guard !ids.isEmpty else { return }
        isWaking = true
        read(.firstJobs(ids)) { [unowned self] result in
            isWaking = false
            guard phase == .serving else { return }
            guard case .success(.jobs(let rows)) = result else {
                log(.error, "Jobs whose timers ended cannot be read: \(Self.error(of: result).message)")
                wakeLater(ids)
                return setTimer(.readAgain, in: 1)
            }
            mostWoken = min(Self.mostWoken, 2 * mostWoken)
            let end = StoredJobPage.count(of: ids, answeredBy: rows)
            resting.putBack(ids[end...])
            for row in rows where resting[row.id]?.isDue == true {
                // Where its list gave it up, it waits to be stopped.
                if let job = table.present(row), let entry = wake(job) { timerFired(entry) }
            }
            // What cannot be read by itself goes on with the next daemon, if ever.
            let read = Set(rows.map(\.id))
            for id in ids[..<end] where !read.contains(id) && resting[id]?.isDue == true { dropRest(id) }
        }
    }

    /// Jobs cannot be read. It may be because of one of them, so that they are read singly, and one that cannot be read alone
    /// lets the others go first.
    private func wakeLater(_ ids: [JobID]) {
        mostWoken = 1
        if let id = ids.first, ids.count == 1 {
            resting.delay(id)
            setTimer(.timer(id), in: Self.unreadableDelay)
        } else {
            resting.putBack(ids)
        }
    }
}

extension ActiveJob {
    /// Whether it is stored as it is, and nothing is under way that needs it in memory.
    fileprivate var isSettled: Bool {
        isStored && unsaved == nil && slot == nil && run == nil && awaitingSave.isEmpty && postponed.isEmpty
            && !isBeingRetried && !hasOldMark && job.crashes == 0
    }
}
