import InMemoryStore
import JobCore
import JobModel

/// What becomes durable, compared with what may (invariants 1, 2, 4 and 9).
extension Oracle {
    func durable(_ id: WriteID, _ write: StoreWrite, _ written: StoreWritten, _ world: World) {
        switch (write, written) {
        case (.submit(let new), .submitted(let submissions)):
            if new.contains(where: { $0.spec.key?.utf8.starts(with: ScheduleKey.jobKeyPrefix.utf8) == true }) {
                world.violate(11, "a job of a schedule is stored without the schedule")
            }
            submitted(id, new, submissions, world)
        case (.children(let new), .numbered(let ids)): madeChildren(id, new, ids, world)
        case (.save(let rows), _):
            for row in rows { saved(row, world) }
        case (.remove(let root), .removed(let removed)):
            if let job = jobs[root] {
                if !job.removeAsked { world.violate(1, "job \(root) is removed, and nobody asked for that") }
                if !job.isOver { world.violate(1, "job \(root) is removed while it is \(job.row.state)") }
            }
            remove(removed, by: id, world)
        case (.removeChildren(let root, let link), .removed(let removed)):
            if let job = jobs[root], !job.retries.isDue {
                world.violate(1, "children of job \(root) from link \(link) on are removed without a retry")
            }
            if !removed.isEmpty { jobs[root]?.retries.begins() }
            remove(removed, by: id, world)
        case (.purge(let time, let kept, _), .removed(let removed)):
            let oldest = latestWall.adding(seconds: -settings.retentionAge)
            if time > oldest || kept < settings.retentionCount {
                world.violate(
                    1, "a purge keeps less than retention says: \(kept), \(time) where \(oldest) is the oldest")
            }
            checkShares(removed, before: time, world)
            remove(removed, by: id, world)
        case (.purgeOldest(_, _, let owner), .removed(let removed)):
            let finished = finishedBytes
            if !removed.isEmpty, finished + 100_000 < settings.retentionBytes {
                world.violate(1, "jobs are purged for their bytes, which are \(finished) of \(settings.retentionBytes)")
            }
            if !removed.isEmpty { checkPart(of: owner, world) }
            if let other = removed.first(where: { $0.owner != owner }) {
                world.violate(1, "job \(other.id) of user \(other.owner) is purged with those of user \(owner)")
            }
            remove(removed, by: id, world)
        case (.queue(let settings), _): queues[settings.name] = settings
        case (.setSchedule(let row, _), _): scheduleSet(row, world)
        case (.removeSchedule(let key), _): schedules[key] = nil
        case (.advance(let row, let job), .submitted(let submissions)):
            scheduleAdvanced(row, job, submissions, world)
            if let job, !submissions.isEmpty { submitted(id, [job], submissions, world) }
        default: break
        }
    }

    /// Who is purged for the count of all finished jobs keeps at least an equal part of it.
    private func checkShares(_ removed: [RemovedJob], before time: Timestamp, _ world: World) {
        let young = removed.compactMap { jobs[$0.id]?.row }.filter { row in
            row.parent == nil && row.finishedAt.map { $0 >= time } ?? false
        }
        guard !young.isEmpty else { return }
        let roots = jobs.values.filter { $0.isOver && $0.row.parent == nil }
        let counts = Dictionary(roots.map { ($0.row.owner, 1) }, uniquingKeysWith: +)
        for (owner, purged) in Dictionary(young.map { ($0.owner, 1) }, uniquingKeysWith: +) {
            let left = counts[owner, default: 0] - purged
            if left < settings.retentionCount / max(1, counts.count) {
                world.violate(
                    1, "user \(owner) keeps \(left) finished jobs of \(settings.retentionCount), as others have more")
            }
        }
    }

    /// Who is purged for the bytes of all finished jobs has more than about an equal part of them.
    private func checkPart(of owner: UInt32, _ world: World) {
        var bytes: [UInt32: Int64] = [:]
        for job in jobs.values where job.isOver { bytes[job.row.owner, default: 0] += job.size }
        let part = settings.retentionBytes / Int64(max(1, bytes.count))
        if bytes[owner, default: 0] + 100_000 < part {
            world.violate(1, "user \(owner) is purged for \(bytes[owner, default: 0]) bytes, and \(part) are theirs")
        }
    }

    private var finishedBytes: Int64 {
        jobs.values.reduce(0) { $0 + ($1.isOver ? $1.size : 0) }
    }

    // MARK: - New jobs

    private func submitted(_ id: WriteID, _ new: [Job], _ submissions: [Submission], _ world: World) {
        guard new.count == submissions.count else { return world.violate(1, "the store answers another number") }
        for (job, submission) in zip(new, submissions) {
            guard case .created(let number) = submission else { continue }
            var row = job
            row.id = number
            insert(row, parent: nil, by: id, world)
            checkQuota(row.owner, world)
        }
        world.figures.submitted += new.count
    }

    private func madeChildren(_ id: WriteID, _ new: NewChildren, _ ids: [JobID], _ world: World) {
        guard let parent = jobs[new.parent.id] else { return }
        guard !ids.isEmpty else { return }
        saved(new.parent, world)
        let link = new.parent.link
        if parent.children[link] != nil {
            world.violate(2, "the children of job \(parent.id), link \(link), are made a second time")
        }
        var made: [KnownJob] = []
        guard case .jobs(let rows) = world.store.tables.read(.jobs(ids)), rows.count == ids.count else {
            return world.violate(1, "the children of job \(parent.id) are not all there")
        }
        for row in rows {
            made.append(insert(row, parent: parent, by: id, world))
            if row.owner != parent.row.owner { world.violate(1, "child \(row.id) belongs to another user") }
        }
        parent.children[link] = made
        checkQuota(parent.row.owner, world)
        if ids.count > settings.limits.children {
            world.violate(4, "job \(parent.id) has \(ids.count) children of \(settings.limits.children)")
        }
    }

    @discardableResult
    private func insert(_ row: Job, parent: KnownJob?, by write: WriteID, _ world: World) -> KnownJob {
        let job = KnownJob(row, parent: parent)
        if row.id <= lastJob || jobs[row.id] != nil { world.violate(1, "the number \(row.id) is used twice") }
        lastJob = max(lastJob, row.id)
        version += 1
        jobs[row.id] = job
        counts.add(row, size: job.size, 1)
        if row.state.isTerminal { ends[row.state, default: 0] += 1 } else { unfinished.insert(row.id) }
        noteTimes(of: job)
        newlyStored[write, default: []].append(row.id)
        return job
    }

    /// Waiting jobs of a user do not pass the limits, but for those that were running and wait again.
    private func checkQuota(_ owner: UInt32, _ world: World) {
        let slack = 64 + runs.count
        let limits = settings.limits
        if counts.waiting[owner, default: 0] > limits.queuedJobsPerUser + slack {
            world.violate(
                4, "user \(owner) has \(counts.waiting[owner, default: 0]) waiting jobs of \(limits.queuedJobsPerUser)")
        }
        if counts.allWaiting > limits.queuedJobs + slack {
            world.violate(4, "\(counts.allWaiting) jobs wait, of \(limits.queuedJobs)")
        }
        let bytes = counts.bytes[owner, default: 0]
        if bytes > settings.storedPerUser + settings.storedPerUser / 4 + 2_000_000 {
            world.violate(4, "user \(owner) has \(bytes) bytes stored, of \(settings.storedPerUser)")
        }
    }

    private func remove(_ rows: [RemovedJob], by write: WriteID, _ world: World) {
        if !rows.isEmpty { removedBy[write] = Set(rows.map(\.id)) }
        for gone in rows {
            guard let job = jobs.removeValue(forKey: gone.id) else {
                world.violate(1, "job \(gone.id) is removed twice")
                return
            }
            if !job.isOver, job.parent == nil || !(job.root.isOver || job.root.retries.isDue) {
                world.violate(1, "job \(gone.id) is removed while it is \(job.row.state)")
            }
            version += 1
            removed[gone.id] = job
            unready(job)
            counts.add(job.row, size: job.size, -1)
            unfinished.remove(gone.id)
            timed.remove(gone.id)
            if let parentage = job.row.parent { job.parent?.children[parentage.link] = nil }
            if let run = job.run { abandonedRuns.insert(run) }
        }
    }

    // MARK: - What became of a job

    private func saved(_ new: Job, _ world: World) {
        guard let job = jobs[new.id] else { return }
        let old = job.row
        if new.carriedSize != new.carried?.storedSize ?? 0 {
            world.violate(4, "job \(job.id) carries \(new.carried?.storedSize ?? 0) bytes, not \(new.carriedSize)")
        }
        if new.owner != old.owner || new.parent != old.parent || new.createdAt != old.createdAt {
            world.violate(1, "job \(job.id) changed its owner, parent or time")
        }
        if new.spec !== old.spec, job.parent == nil, new.spec != old.spec {
            world.violate(1, "job \(job.id) has another spec than was submitted")
        }
        // A retry that was refused after its children were removed, and cancelled before anything could be stored again.
        let wasRetriedAndCancelled = old.state.isTerminal && new.state == .cancelled && job.retries.hasBegun
        if old.state.isTerminal {
            if !new.state.isTerminal || wasRetriedAndCancelled {
                retried(job, old, new, world)
            } else {
                checkUnchanged(old, new, world)
            }
        } else {
            checkProgress(job, old, new, world)
        }
        counts.add(old, size: job.size, -1)
        job.row = new
        noteTimes(of: job)
        counts.add(new, size: job.size, 1)
        job.dueSeen = false
        if old.state == .queued, !new.state.isTerminal || new.state != old.state, new.state != .scheduled,
            old.link == 0, new.stop == nil, old.spec.source.type?.isOutside != true
        {
            // It had a turn that no source shows.
            shares.serve(old.owner, in: old.spec.queue)
        }
        if new.state.isTerminal, !old.state.isTerminal || wasRetriedAndCancelled { over(job, world) }
        if !new.state.isTerminal, old.state.isTerminal { unfinished.insert(job.id) }
        if new.crashes > old.crashes || new.outcomes.count > old.outcomes.count { job.crashIsDue = false }
        if job.ended.map({ $0.link != new.link || new.state == .scheduled }) ?? false || new.state.isTerminal {
            job.ended = nil
        }
    }

    private func checkUnchanged(_ old: Job, _ new: Job, _ world: World) {
        if new.state != old.state || new.outcomes != old.outcomes || new.carried != old.carried {
            world.violate(2, "job \(old.id) was over (\(old.state)) and changed to \(new.state)")
        }
    }

    private func retried(_ job: KnownJob, _ old: Job, _ new: Job, _ world: World) {
        guard job.retries.isDue else {
            return world.violate(2, "job \(job.id) was over (\(old.state)) and is \(new.state) without a retry")
        }
        if old.state == .succeeded { world.violate(2, "job \(job.id) succeeded and is retried") }
        if job.parent != nil { world.violate(2, "child \(job.id) is retried") }
        let kept = old.outcomes.filter { $0.link < new.link }
        if new.stop != nil, !(job.retries.hasBegun && job.cancelAsked) {
            world.violate(2, "job \(job.id) is stopped with its retry")
        }
        if new.outcomes.count < kept.count {
            world.violate(2, "a retry of job \(job.id) lost outcomes")
        }
        if job.retries.isFromStart, new.link != 0 || !new.outcomes.isEmpty {
            world.violate(2, "job \(job.id) is retried from link \(new.link) instead of the start")
        }
        if new.crashes != 0 { world.violate(2, "a retry of job \(job.id) did not reset its crashes") }
        job.retries.isStored()
        job.generation += 1
        // A cancel that was asked for later is for what the retry makes of it.
        job.cancelAsked = requests.values.contains { $0.request.isCancel(of: job.id) }
        job.isCancelled = false
        job.crashIsDue = false
        job.started = nil
        for link in job.children.keys where link >= new.link { job.children[link] = nil }
    }

    private func checkProgress(_ job: KnownJob, _ old: Job, _ new: Job, _ world: World) {
        guard new.outcomes.count >= old.outcomes.count,
            zip(old.outcomes, new.outcomes).allSatisfy({ $0.link == $1.link && $0.error?.kind == $1.error?.kind })
        else { return world.violate(2, "outcomes of job \(job.id) changed") }
        if old.stop != nil, new.stop != old.stop { world.violate(9, "job \(job.id) forgot that it was stopped") }
        if old.stop == nil, let stop = new.stop { checkStop(job, stop, old, world) }
        switch Chain.position(of: new) {
        case .impossible(let why): return world.violate(2, "job \(job.id): \(why)")
        case .over:
            if !new.state.isTerminal {
                world.violate(2, "job \(job.id) has run all its links and is \(new.state)")
            } else if new.state != Chain.end(of: new) {
                world.violate(2, "job \(job.id) ended as \(new.state) instead of \(Chain.end(of: new))")
            }
        case .at(let link):
            if new.state.isTerminal {
                world.violate(new.stop != nil ? 9 : 2, "job \(job.id) is \(new.state) and link \(link) did not run")
            } else if new.link != link {
                world.violate(2, "job \(job.id) is at link \(new.link) instead of \(link)")
            }
        }
        for outcome in new.outcomes[old.outcomes.count...] { checkOutcome(outcome, job, old, new, world) }
        if new.crashes > old.crashes {
            if new.crashes != old.crashes + 1 || !job.crashIsDue {
                world.violate(10, "job \(job.id) counts \(new.crashes) crashes in a row after \(old.crashes)")
            }
        }
        if new.state == .scheduled, old.state != .scheduled || new.attempt != old.attempt {
            checkPause(job, old, new, world)
        }
    }

    private func checkStop(_ job: KnownJob, _ stop: Job.Stop, _ old: Job, _ world: World) {
        switch stop {
        case .cancelled:
            if !job.stopHasCause(at: latestWall) {
                world.violate(9, "job \(job.id) is cancelled, and nobody asked for that: \(job)")
            }
        case .deadline:
            if old.deadlineAt.map({ $0 > latestWall }) ?? true {
                world.violate(9, "job \(job.id) passed no deadline and is stopped for it")
            }
        }
    }

    private func checkOutcome(_ outcome: LinkOutcome, _ job: KnownJob, _ old: Job, _ new: Job, _ world: World) {
        let kind = outcome.error?.kind
        if new.stop != nil, kind == .cancelled || kind == .deadline { return }
        let step = outcome.link == 0 ? new.spec.source : Self.step(new.spec, outcome)
        if outcome.link == old.link, old.attempt > 0, kind != .interrupted {
            let expected = Chain.completedAttempts(of: old) + 1
            if outcome.attempts != expected {
                world.violate(
                    2,
                    "link \(outcome.link) of job \(job.id) counts \(outcome.attempts) attempts instead of \(expected)")
            }
        }
        if kind == .interrupted, old.crashes + (job.crashIsDue ? 1 : 0) < 3 {
            world.violate(10, "job \(job.id) is ended as interrupted after \(old.crashes) crashes")
        }
        guard let step else { return }
        if step.type?.isOutside == true { checkEnd(outcome, step, job, new, world) }
        if step.type?.hasChildren == true { checkList(outcome, step, job, new, world) }
    }

    private static func step(_ spec: JobSpec, _ outcome: LinkOutcome) -> Step? {
        switch spec.links[outcome.link - 1] {
        case .both(let step), .finally(let step): step
        // Which of both ran depends on what came in; where only one can, it is known.
        case .pair(let then, let fail, _): then == nil ? fail : fail == nil ? then : nil
        }
    }

    /// Failures that the core may find by itself, without a source.
    private static let ownFailures: Set<JobError.Kind> = [
        .template, .policy, .invalid, .tooLarge, .interrupted, .storage, .internal, .timeout,
    ]

    /// The outcome of a link with a source is what the source ended with.
    private func checkEnd(_ outcome: LinkOutcome, _ step: Step, _ job: KnownJob, _ new: Job, _ world: World) {
        guard let ended = job.ended, ended.link == outcome.link else {
            if let error = outcome.error, Self.ownFailures.contains(error.kind) { return }
            return world.violate(2, "link \(outcome.link) of job \(job.id) has an outcome, and its source did not end")
        }
        switch (ended.outcome, outcome.error) {
        case (.success(let value), nil):
            guard case .success(let carried) = new.carried, new.outcomes.last?.link == outcome.link,
                outcome.link == 0 || !new.spec.links[outcome.link - 1].isFinally
            else { return }
            if carried.size != value.size {
                world.violate(2, "job \(job.id) carries another value than its source gave")
            }
        case (.failure(let error), let stored?):
            if error.kind != stored.kind {
                world.violate(
                    2, "job \(job.id) keeps \(stored.kind.rawValue) where its source said \(error.kind.rawValue)")
            }
            if error.isRetryable, new.stop == nil, ended.attempt <= new.spec.retryPolicy(of: step).max {
                world.violate(2, "job \(job.id) gave up at attempt \(ended.attempt), which it may retry")
            }
        case (.success, let stored?):
            if stored.kind != .tooLarge { world.violate(2, "job \(job.id) failed where its source succeeded") }
        case (.failure, nil): world.violate(2, "job \(job.id) succeeded where its source failed")
        }
    }

    /// A pause before a retry is as long as the policy says.
    private func checkPause(_ job: KnownJob, _ old: Job, _ new: Job, _ world: World) {
        guard let ended = job.ended, case .failure(let error) = ended.outcome, ended.link == new.link,
            let step = new.step
        else { return }
        let policy = new.spec.retryPolicy(of: step)
        if !error.isRetryable || new.attempt > policy.max {
            world.violate(2, "job \(job.id) is retried a time too often (attempt \(new.attempt) of \(policy.max + 1))")
        }
        if new.attempt != ended.attempt {
            world.violate(2, "job \(job.id) counts \(new.attempt) attempts instead of \(ended.attempt)")
        }
        guard new.lastFailure?.kind == error.kind else { return }
        let asked = error.retryAfter ?? 0
        let pause = max(
            policy.delay(afterAttempt: new.attempt, random: ended.random), asked > 0 ? min(asked, policy.maxDelay) : 0)
        let expected = ended.wall.adding(seconds: pause)
        checked.pauses += 1
        if new.notBefore != expected {
            world.violate(
                2, "job \(job.id) waits until \(new.notBefore?.description ?? "never") instead of \(expected)")
        }
    }

    private func noteTimes(of job: KnownJob) {
        let isTimed =
            !job.isOver && (job.row.state == .scheduled || job.row.deadlineAt != nil && job.row.stop == nil)
        if isTimed { timed.insert(job.id) } else { timed.remove(job.id) }
    }

    /// A job ended, and that is stored.
    private func over(_ job: KnownJob, _ world: World) {
        unfinished.remove(job.id)
        unready(job)
        ends[job.row.state, default: 0] += 1
        for (index, link) in job.row.spec.links.enumerated() where link.isFinally {
            let count = job.row.outcomes.count { $0.link == index + 1 }
            if count != 1 { world.violate(9, "finally link \(index + 1) of job \(job.id) ran \(count) times") }
        }
        if job.run != nil { world.violate(2, "job \(job.id) is over while its source is at work") }
        for subscription in subscriptions.values where subscription.covers(job) {
            subscription.endIsDue(job.id)
        }
    }
}
