import JobModel

/// What happens when a time has come.
extension JobCore {
    /// Jobs that are read at once for their time.
    private static let page = 512

    /// Timers that fire about one input, so that nobody waits for those of others that come to their time together.
    private static let mostFired = 256

    func fireTimers() {
        guard phase == .serving, unresumed == nil else { return }
        for _ in 0..<Self.mostFired {
            guard let timer = timers.popDue(at: now.monotonic) ?? wallTimers.popDue(at: now.wall.milliseconds) else {
                return
            }
            fire(timer)
        }
        yield()
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
        // What is ready is looked at with every input.
        case .schedules: advancing.endPauses()
        case .schedule: break
        }
    }

    /// Sets the timers for what the store says comes next, but not before `soonest` seconds.
    func setTimes(_ times: StoredTimes, soonest: Double = 0) {
        let earliest = now.wall.adding(seconds: soonest)
        if let due = times.due { setWallTimer(.due, at: max(due, earliest)) }
        if let deadline = times.deadline { setWallTimer(.deadline, at: max(deadline, earliest)) }
    }

    /// How long what is due waits where much is on its way to the store.
    private static let delay = 0.1

    private func startDue() {
        guard !hasTooMuchPending else { return setWallTimer(.due, at: now.wall.adding(seconds: Self.delay)) }
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
        guard !hasTooMuchPending else { return setWallTimer(.deadline, at: now.wall.adding(seconds: Self.delay)) }
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
            setTimes(times, soonest: Self.delay)
        }
    }
}
