import InMemoryStore
import JobCore
import JobModel

/// Sources that begin and end, compared with what may (invariants 2, 4, 5, 9 and 10).
extension Oracle {
    func sourceEnded(_ run: RunID, _ outcome: Outcome, _ random: Double, at now: CoreTime, _ world: World) {
        // One that was cancelled is told of all the same, and has no effect.
        guard let known = runs.removeValue(forKey: run) else { return }
        known.job.run = nil
        known.job.ended = (known.link, known.attempt, outcome, random, now.wall)
        if case .failure(let error) = outcome { backsOff(known, error, at: now) }
    }

    /// A host asks to be left alone.
    func backsOff(_ run: KnownRun, _ error: JobError, at now: CoreTime) {
        guard let asked = error.retryAfter, asked > 0 else { return }
        let until = now.monotonic + Int64(min(asked, settings.longestBackOff) * 1e9)
        backedOff[run.key.host] = max(backedOff[run.key.host] ?? 0, until)
    }

    func starts(_ run: SourceRun, at now: CoreTime, _ world: World) {
        checked.starts += 1
        guard let job = jobs[run.job] else {
            guard let gone = removed[run.job], gone.parent != nil else {
                return world.violate(1, "a source of job \(run.job) starts, which is not stored")
            }
            // A `finally` link below a job that is over. The core is yet to be told that all of it is gone.
            runs[run.run] = KnownRun(
                job: gone, link: run.link, attempt: run.attempt,
                key: Shares.Key(queue: gone.row.spec.queue, owner: gone.row.owner, host: gone.row.host ?? ""),
                connections: run.connections, isProgram: run.parameters.program != nil)
            return
        }
        let row = job.row
        if job.run != nil { world.violate(2, "a second source of job \(job.id) starts") }
        if runs[run.run] != nil { world.violate(2, "the run \(run.run) starts twice") }
        if row.state.isTerminal {
            world.violate(2, "a source of job \(job.id) starts, which is over (\(row.state))")
        } else if Chain.position(of: row) != .at(run.link) {
            world.violate(2, "link \(run.link) of job \(job.id) starts where \(Chain.position(of: row)) is stored")
        }
        let attempt = row.link == run.link ? Chain.completedAttempts(of: row) + 1 : 1
        if run.attempt != attempt {
            world.violate(
                2, "link \(run.link) of job \(job.id) starts with attempt \(run.attempt) instead of \(attempt)")
        }
        if let last = job.started, last == (world.life, run.link, run.attempt) {
            world.violate(2, "attempt \(run.attempt) of link \(run.link) of job \(job.id) starts twice")
        }
        job.started = (world.life, run.link, run.attempt)
        let step = row.step
        if run.timeout != step?.timeout ?? row.spec.timeout {
            world.violate(2, "job \(job.id) runs with another timeout than its spec says")
        }
        checkMayStart(run, job, at: now, world)
        count(run, job, at: now, world)
    }

    private func checkMayStart(_ run: SourceRun, _ job: KnownJob, at now: CoreTime, _ world: World) {
        let row = job.row
        if let time = row.notBefore, row.state == .scheduled, time > latestWall {
            world.violate(3, "job \(job.id) starts before its time")
        }
        let isFinally = run.link > 0 && row.spec.links[run.link - 1].isFinally
        if !isFinally {
            if row.stop != nil || job.isOverruled {
                world.violate(9, "link \(run.link) of job \(job.id) starts after it was stopped: \(job)")
            }
            if let deadline = row.deadlineAt, deadline <= now.wall {
                world.violate(9, "link \(run.link) of job \(job.id) starts after its deadline")
            }
        }
        if job.crashIsDue {
            world.violate(10, "job \(job.id) starts before its crash is counted")
        } else if row.crashes >= 3, !isFinally, row.outcomes.last?.error?.kind != .interrupted {
            world.violate(10, "job \(job.id) starts after \(row.crashes) crashes in a row")
        }
    }

    /// Counts slots, hosts and list concurrency.
    private func count(_ run: SourceRun, _ job: KnownJob, at now: CoreTime, _ world: World) {
        let url: String
        switch run.parameters {
        case .url(let request), .json(let request, _): url = request.url
        case .download(let download): url = download.url
        case .upload(let upload): url = upload.url
        case .program: url = ""
        default: return world.violate(2, "job \(job.id) has a source started which the core runs itself")
        }
        let row = job.row
        let key = Shares.Key(queue: row.spec.queue, owner: row.owner, host: Scenario.host(of: url) ?? "")
        unready(job)
        job.run = run.run
        runs[run.run] = KnownRun(
            job: job, link: run.link, attempt: run.attempt, key: key, connections: run.connections,
            isProgram: run.parameters.program != nil)
        batch.starts.append((key, isTurn: row.state == .queued))
        if !world.store.tables.isMarked(job.id) {
            world.violate(10, "a source of job \(job.id) starts without a mark that a crash would leave")
        }
        var (inQueue, ofOwner, onHost, siblings) = (0, 0, 0, 0)
        for other in runs.values {
            if other.key.queue == key.queue {
                inQueue += 1
                if other.key.owner == key.owner { ofOwner += 1 }
            }
            if other.key.host == key.host { onHost += other.connections }
            // What a list gave up it does not count: only `finally` links of that run.
            if let parent = job.parent, other.job.parent === parent, other.job.row.parent?.link == row.parent?.link,
                other.job.row.stop == nil
            {
                siblings += 1
            }
        }
        guard let queue = queues[key.queue] else {
            return world.violate(4, "a job starts in the queue \(key.queue), which there is not")
        }
        if changingQueues[key.queue] == nil {
            if inQueue > queue.concurrency {
                world.violate(4, "queue \(key.queue) runs \(inQueue) sources with \(queue.concurrency) slots")
            }
            let perUser = perUser(queue)
            if ofOwner > perUser {
                world.violate(4, "user \(key.owner) runs \(ofOwner) sources in \(key.queue), of \(perUser)")
            }
            if queue.isSuspended, run.link == 0, row.attempt == 0 {
                world.violate(4, "a job starts in the queue \(key.queue), which is suspended")
            }
        }
        if !key.host.isEmpty, onHost > hostLimit {
            world.violate(4, "\(onHost) connections ask \(key.host) at once, of \(hostLimit)")
        }
        checkIsOpen(key.host, to: row, at: now, world)
        if row.stop == nil { checkConcurrency(job, siblings, world) }
    }

    /// A host that asked to be left alone is asked by nobody but who has waited as their own retries do, or goes on. Whoever
    /// had to be read first may have got their turn before.
    private func checkIsOpen(_ host: String, to row: Job, at now: CoreTime, _ world: World) {
        guard row.state == .queued, !batch.isRows, row.lastFailure?.http == nil, let until = backedOff[host] else {
            return
        }
        checked.backOffs += 1
        if until > now.monotonic {
            world.violate(4, "job \(row.id) asks \(host) \(until - now.monotonic) ns before it may")
        }
    }

    private func checkConcurrency(_ job: KnownJob, _ siblings: Int, _ world: World) {
        guard let parent = job.parent, let link = job.row.parent?.link, let step = parent.row.spec.stepOfList(link),
            case .source(let source) = step.action, let limit = source["concurrency"]?.int
        else { return }
        if siblings > limit {
            world.violate(4, "\(siblings) children of job \(parent.id) run at once, of \(limit)")
        }
    }

    /// The most slots that one owner gets.
    func perUser(_ queue: QueueSettings) -> Int {
        if let own = queue.perUser { return max(1, min(own, queue.concurrency)) }
        return max(1, Int((Double(queue.concurrency) * settings.ownersShare).rounded(.down)))
    }

    func cancels(_ run: RunID, _ world: World) {
        if let known = runs[run], known.isProgram {
            // It keeps its slot until it has ended, whatever becomes of its job.
            if known.isEnding { world.violate(2, "the program of job \(known.job.id) is told to end a second time") }
            runs[run]?.isEnding = true
            return
        }
        guard let known = runs.removeValue(forKey: run) else {
            if abandonedRuns.remove(run) != nil { return }
            return world.violate(2, "the run \(run) is cancelled, which is not at work")
        }
        known.job.run = nil
    }

    // MARK: - Work that can start

    /// Counts a job as work, where it can start for certain.
    func refreshReady(_ job: KnownJob) {
        unready(job)
        let row = job.row
        guard isStarted, row.state == .queued, row.link == 0, row.stop == nil, !row.isGated, row.deadlineAt == nil,
            job.isPlain, !job.cancelAsked, !job.removeAsked, let host = row.host,
            row.spec.source.type?.isOutside == true,
            job.run == nil, queues[row.spec.queue] != nil, row.crashes == 0, !job.crashIsDue
        else { return }
        let key = Shares.Key(queue: row.spec.queue, owner: row.owner, host: host)
        job.ready = key
        shares.add(key)
    }

    func unready(_ job: KnownJob) {
        guard let key = job.ready else { return }
        job.ready = nil
        shares.remove(key)
    }

    // MARK: - Shares

    /// What one input led to, as far as fairness goes.
    struct Batch {
        var starts: [(key: Shares.Key, isTurn: Bool)] = []
        var saves = 0
        var isEnd = false
        var isRows = false
        /// An owner's turn for what takes long.
        var isLongWork = false
    }

    /// Whether some work of an owner can start, for certain.
    private func canStart(_ owner: Shares.Owner, _ number: UInt32, _ onHosts: [String: [UInt32: Int]]) -> Bool {
        owner.hosts.contains { host, _ in
            let users = onHosts[host] ?? [:]
            let own = users[number] ?? 0
            return users.values.reduce(0, +) < settings.perHost && backedOff[host] == nil
                && (own == 0 || users.allSatisfy { $0.value >= own || $0.key == number }) && own == 0
        }
    }

    /// Looks at who was served and who was not, once an input is dealt with.
    func checkShares(at now: CoreTime, _ world: World) {
        defer { batch = Batch() }
        guard !batch.starts.isEmpty else { return }
        backedOff = backedOff.filter { $0.value + 10_000_000 > now.monotonic }
        // A job that has its owner's turn got its slot and its host before.
        let isCertain =
            world.store.reads == 0 && !batch.isRows && !batch.isLongWork
            && batch.saves <= (batch.isEnd ? 1 : 0)
            && world.store.health == .well && world.clock.elapsed - world.store.lastUnwell > 10_000_000_000
        let names = Set(batch.starts.map(\.key.queue)).sorted()
        for name in names { checkShares(in: name, isCertain: isCertain && changingQueues[name] == nil, world) }
    }

    /// So many ready jobs of one owner in one queue are in memory, whatever hosts they wait for.
    private static let surelyInMemory = JobCore.windowSize / 4

    private func checkShares(in name: String, isCertain: Bool, _ world: World) {
        let starts = batch.starts.filter { $0.key.queue == name }
        // A job in the middle of its chain may have kept its slot or had a turn; that does not show.
        guard let queue = queues[name], isCertain, starts.allSatisfy(\.isTurn) else {
            for start in starts { shares.serve(start.key.owner, in: name) }
            return
        }
        // Slots as they were before each of these starts, worked out backwards from how they are now.
        var used = world.slots(in: name)
        for start in starts { used[start.key.owner, default: 1] -= 1 }
        // As the core has it: also jobs that wait for their owner's turn have a host. That nothing leaks is seen elsewhere.
        let onHosts = world.core.inspectHostShares()
        let perUser = perUser(queue)
        for start in starts {
            let server = start.key.owner
            let own = used[server, default: 0]
            var passedOver: [UInt32] = []
            for (owner, share) in shares.queues[name]?.owners ?? [:] where owner != server {
                let others = used[owner, default: 0]
                guard share.ready > 0, others < perUser, canStart(share, owner, onHosts),
                    world.core.waitingForTurns(of: owner) == 0, !world.core.keepsOthersWaiting(owner)
                else { continue }
                checked.fairStarts += 1
                // Of many jobs those that could start may have to be read first; that must not show over 100 starts.
                if others < own, counts.queued(of: owner, in: name) <= Self.surelyInMemory {
                    return world.violate(
                        5,
                        "user \(server), who has \(own) slots of \(name), is served before user \(owner), who has \(others) and work: \(share.hosts)"
                    )
                }
                if others <= own { passedOver.append(owner) }
            }
            shares.serve(server, in: name, passingOver: passedOver)
            used[server, default: 0] += 1
            for owner in passedOver {
                guard let (turns, owners) = shares.share(of: owner, in: name) else { continue }
                checked.fairWindows += 1
                if turns * 2 * owners < Shares.window {
                    return world.violate(
                        5, "user \(owner) got \(turns) of 100 starts in \(name), where \(owners) users had work")
                }
            }
        }
    }
}

extension JobSpec {
    /// The step of a link that makes children.
    func stepOfList(_ link: Int) -> Step? {
        guard link > 0 else { return source }
        guard links.indices.contains(link - 1) else { return nil }
        switch links[link - 1] {
        case .both(let step), .finally(let step): return step
        case .pair(let then, let fail, _):
            let lists = [then, fail].compactMap(\.self).filter { $0.type?.hasChildren == true }
            return lists.count == 1 ? lists[0] : nil
        }
    }
}

extension KnownJob {
    /// Whether nothing but itself decides about it: it is below no race, no list that fails at once, and no timeout.
    var isPlain: Bool {
        guard let parentage = row.parent, let parent else { return row.parent == nil }
        guard let step = parent.row.spec.stepOfList(parentage.link), case .source(let source) = step.action,
            source["mode"].map({ $0.string == "settled" }) ?? true, source["concurrency"] == nil,
            step.timeout == nil, parent.row.spec.timeout == nil, !parent.cancelAsked, parent.row.deadlineAt == nil
        else { return false }
        return parent.isPlain
    }
}
